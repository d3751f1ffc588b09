"""Federated averaging by DP-REC: the figures and tables of its paper."""
