"""What of a checkout a folder to work in needs; setup.py puts it into wheels."""

PARTS = ("Snakefile", "config.yaml", "config", "environment.yml", "workflow", "profiles", "docs/examples")
