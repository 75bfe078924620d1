"""Measurements of the harness itself: warm-up, measure, repeat, interleave; one module a question.

Ratios and never bare times: a machine that is slow today slows all contenders, if they take turns.
"""
