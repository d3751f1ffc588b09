"""
Deployment: from a mechanism to clients and back
================================================

A deployment is a folder with everything that clients and a server need: the guarantee, client code in other languages, and known answers. This
program plays all parts in one process.
"""

# %%
# Each of 4,000 clients visits one of 40 pages. The server wants the pages' frequencies, and must not learn any visit. ``deploy`` finds the
# parameters for epsilon 2. A hash names the deployment.

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import quietbits

PAGES = 40
deployment = quietbits.deploy("hadamard-response", epsilon=2.0, categories=PAGES, name="pages")
print(deployment.mechanism.guarantee)
print(f"{deployment.mechanism.bits_per_client:g} bits a client, deployment {deployment.hash[:16]}")

# %%
# The folder holds source code in the chosen languages. ``verify_deployment`` computes every file again, and compares.

with TemporaryDirectory() as folder:
    quietbits.write_deployment(deployment, Path(folder), languages=("c", "rust"))
    quietbits.verify_deployment(Path(folder))
    print(*sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*.*")), sep="\n")

# %%
# ``encode_inputs`` is the reference client: it draws from the operating system's randomness. Clients in other languages send the same bytes for
# the same random words. The decoder counts messages as they arrive, and refuses messages that no client of the deployment can have sent.

rng = np.random.default_rng(3)
shares = 0.85 ** np.arange(PAGES)
visits = rng.choice(PAGES, size=4000, p=shares / shares.sum())
decoder = deployment.decoder()
for messages, _ in quietbits.encode_inputs(deployment, visits):
    decoder.add(messages)
decoder.add_alone([b"not a message"])
estimate = decoder.estimate()
print(f"{estimate.accepted} messages accepted, refused: {estimate.refused}")
print(f"epsilon left of a client's budget: {estimate.epsilon_left:g}")

# %%
# The estimate comes with standard errors from the messages alone. The bars are two standard errors long on each side.

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
pages = np.arange(PAGES)
axes.errorbar(
    pages, estimate.mean, yerr=2 * estimate.standard_error, fmt="o", markersize=3, label="estimate"
)
axes.plot(pages, np.bincount(visits, minlength=PAGES) / len(visits), "k_", label="true frequency")
axes.set(xlabel="page", ylabel="frequency")
axes.legend()
plt.show()
