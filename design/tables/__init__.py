"""Lookup tables for one number: design, exact whole numbers, certificate, file, export."""
