"""Studies of a column of data: `estimate mean`, `estimate frequencies` and the demo."""
