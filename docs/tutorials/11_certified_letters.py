"""
Letters: what another bit would gain
====================================

A certificate compares a table with the best table of any size. A second proof compares it with the best table of as many letters. The two
together tell whether a longer message or a longer search could reduce the variance.
"""

# %%
# ``design_mvu`` designs tables of one to three bits. For two letters the second proof is a closed form. ``certify_letters`` searches a proof
# for the other tables, and stops at the given gap.

import matplotlib.pyplot as plt

import quietbits

BITS = (1, 2, 3)
certified = {}
for bits in BITS:
    table = quietbits.design_mvu(epsilon=2.0, bits_in=2, bits_out=bits)
    certified[bits] = quietbits.certify_letters(table, tolerance=0.01, seconds=20.0).table
    print(f"{bits} bits: {certified[bits].gaps}")

# %%
# The proof becomes part of the table's file. ``verify`` recomputes it from the file, without a solver.

certificate = certified[2].certificate
print(f"variance {certificate.mean_variance:.4f}")
print(f"no table of two bits has less than {certificate.letters_lower_bound:.4f}")
print(f"no table of any size has less than {certificate.lower_bound:.4f}")

# %%
# The bars are the variance of each table. No table of as many letters has a variance below its mark, and no table of any size has one below
# the line. A longer message can gain only what lies above the line. A longer search can gain only what lies above the mark.

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.bar(
    BITS, [certified[bits].certificate.mean_variance for bits in BITS], color="0.8", label="table"
)
axes.plot(
    BITS,
    [certified[bits].certificate.letters_lower_bound for bits in BITS],
    "k_",
    markersize=30,
    label="lower bound, as many letters",
)
axes.axhline(
    certified[3].certificate.lower_bound, color="0.4", linestyle="--", label="lower bound, any size"
)
axes.set(xlabel="bits of a message", ylabel="mean variance of one message", xticks=BITS)
axes.legend()
plt.show()
