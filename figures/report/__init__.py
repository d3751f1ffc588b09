"""The offline HTML report."""
