"""Experiments on the whole: what is measured, compared and validated."""
