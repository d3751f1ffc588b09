"""Deployments: a mechanism's client in other languages, its messages on the wire, and their decoder."""
