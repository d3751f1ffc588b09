"""Certified optima: bounds on tables by staircase rays, column generation and dual values.

The folder also has the constraints of privacy on tables.
"""
