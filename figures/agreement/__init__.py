"""Claims of the papers about their figures, and whether the drawn tables agree with them."""
