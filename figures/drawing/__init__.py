"""Style, marks, and saving, shared by all figures."""
