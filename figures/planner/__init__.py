"""The figure and the page of a plan."""
