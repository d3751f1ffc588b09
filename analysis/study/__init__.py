"""One population mean from a column of data: the study behind `estimate mean` and the demo."""
