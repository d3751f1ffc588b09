"""Federated averaging by DP-REC, as the figures and tables of its paper have it."""
