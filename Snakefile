# For `snakemake` in this folder; the workflow itself lies where other workflows and the catalogue look for it.
include: "workflow/Snakefile", overwrite_default_target=True
