"""Certified optima: tables, by staircase rays, column generation and dual values; limits of compressed and of private means."""
