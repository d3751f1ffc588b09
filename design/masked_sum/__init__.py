"""A secure sum between processes: clients agree on masks by public keys, and drop-outs' masks are recovered from secret shares."""
