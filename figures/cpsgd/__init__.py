"""Figures of the cpSGD paper."""
