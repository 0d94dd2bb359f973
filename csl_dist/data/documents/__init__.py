"""Label documents: files of labelled segments that can be edited without touching anything else."""
