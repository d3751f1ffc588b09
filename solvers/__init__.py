"""Pure numerics on arrays: optimisation of tables, certificates, privacy constraints."""
