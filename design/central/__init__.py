"""Mechanisms of the central trust model, the references for mechanisms with less trust."""
