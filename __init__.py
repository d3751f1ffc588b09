"""quietbits: design, certify and compare mechanisms that make a client's message both private and small."""
