"""A secure sum between processes: masks from public keys, and drop-outs' masks from secret shares."""
