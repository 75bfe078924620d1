"""The rules of ``python -m lab check``, one noun a module; facts in, findings out."""
