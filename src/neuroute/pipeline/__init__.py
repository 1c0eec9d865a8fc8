"""The papers as one DAG: plan, jobs, tables and figures, and the command line, all above the library."""
