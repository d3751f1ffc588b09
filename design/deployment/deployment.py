"""Deployments: a mechanism that clients of several languages run, with its guarantee, under a hash."""

import hashlib
import importlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ...arguments import check_integer
from ...arrays import IntegerArray, WordArray
from ...errors import DataError, InfeasibleError
from ...shown import ShownFields
from ...version import __version__
from ..contracts.domains import Categories, Interval
from ..contracts.mechanism import Mechanism
from ..contracts.norm_ball import NormBall
from ..contracts.privacy import Privacy
from ..tables.file import table_document
from ..tables.lookup_table import LookupTable
from .client_program import ClientProgram
from .translation.client_description import ClientDescription
from .wire_format import HASH_BYTES, MOST_ROUNDS

if TYPE_CHECKING:
    from .decoder import Decoder

FORMAT = "quietbits-deployment/1"
TABLE_FILE = "table.json"
LONGEST_NAME = 40
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LABEL = re.compile(r"[A-Za-z0-9._+-]{1,80}")
HASH = re.compile(r"[0-9a-f]{64}")
# Values that fields of mechanisms may have beside numbers, texts and None, by the name of their class.
NESTED: Mapping[str, type] = {kind.__name__: kind for kind in (NormBall, Interval, Categories)}


@dataclass(frozen=True, eq=False)
class Deployment(ShownFields):
    """A mechanism with its clients' program, its guarantee, and a hash that names it.

    Attributes
    ----------
    mechanism : Mechanism
        The mechanism, whose `client_program` is deployed.
    mechanism_name : str
        Name of the mechanism in the registry, or of a table's design.
    rounds : int
        Number of rounds in which the same client may take part; round numbers run from 0 to ``rounds - 1``.
    delta : float
        Failure probability of all rounds together.
    name : str or None
        Name in source code: small letters, digits and single hyphens. By default the mechanism's name and the start of the hash.
    valid_until : str or None
        Last day on which clients should send messages, such as ``"2027-12-31"``; None without an end.
    supersedes : str or None
        Hash of the deployment that this deployment replaces.
    version : str
        Version of quietbits that wrote the deployment.

    Raises
    ------
    InfeasibleError
        If the mechanism has no client in other languages, or adds noise of real numbers.

    Examples
    --------
    >>> from quietbits.design.tables.randomised_response import generalised_randomised_response
    >>> from quietbits.design.tables.table_mean import TableMeanMechanism
    >>> table = generalised_randomised_response(1.0, bits=2)
    >>> deployment = Deployment(TableMeanMechanism(table), table.mechanism, name="age")
    >>> deployment.program.message_bits, deployment.identifier, len(deployment.hash)
    (2, 'age', 64)
    """

    mechanism: Mechanism
    mechanism_name: str
    rounds: int = 1
    delta: float = 0.0
    name: str | None = None
    valid_until: str | None = None
    supersedes: str | None = None
    version: str = __version__

    def __post_init__(self) -> None:
        """Check the fields, and that the mechanism has a program and a guarantee."""
        check_integer("rounds", self.rounds, low=1, high=MOST_ROUNDS)
        if self.name is not None and (not NAME.fullmatch(self.name) or len(self.name) > LONGEST_NAME):
            raise ValueError(
                f"name must be small letters, digits and single hyphens, at most {LONGEST_NAME} in all, and begin with a letter, "
                f"got {self.name!r}"
            )
        if self.supersedes is not None and not HASH.fullmatch(self.supersedes):
            raise ValueError(f"supersedes must be the hash of a deployment, 64 hexadecimal digits, got {self.supersedes!r}")
        if self.valid_until is not None:
            try:
                day = date.fromisoformat(self.valid_until).isoformat()
            except ValueError:
                day = None
            if day != self.valid_until:
                raise ValueError(f"valid_until must be a day such as 2027-12-31, got {self.valid_until!r}")
        # These texts stand in comments and literals of the clients' source code.
        for name in ("mechanism_name", "version"):
            if not LABEL.fullmatch(getattr(self, name)):
                raise ValueError(f"{name} must be letters, digits and the signs - _ . +, at most 80, got {getattr(self, name)!r}")
        if not math.isfinite(self.epsilon):
            raise InfeasibleError(f"mechanism must have a proven guarantee for all rounds, got {self.mechanism_name}: {self.privacy_words}")

    def __reduce__(self) -> tuple[type["Deployment"], tuple[Any, ...]]:
        """Send the fields alone to other processes, which make the program anew."""
        return Deployment, tuple(getattr(self, item.name) for item in fields(self))

    @cached_property
    def program(self) -> ClientProgram:
        """Program of a client; a client of the shuffled trust model has no index."""
        program = self.mechanism.client_program()
        if program.public_words and self.mechanism.guarantee.trust_model == "shuffled":
            raise InfeasibleError("mechanism must send no index of the client under the shuffled trust model, got one with public words")
        return program

    @cached_property
    def privacy(self) -> Privacy:
        """Privacy of one message by every account."""
        return self.mechanism.privacy()

    @cached_property
    def epsilon(self) -> float:
        """Epsilon of all rounds together, at `delta`: the budget that a client spends."""
        return self.epsilon_after(self.rounds)

    def epsilon_after(self, rounds: int) -> float:
        """Return epsilon after some rounds, at `delta`; 0.0 after none.

        Noise at a total variation distance t from the exact law raises delta by (1 + exp(epsilon)) t: epsilon is that of the exact law at
        a delta that is less by so much.
        """
        if rounds == 0:
            return 0.0
        adjacency, distance = self.mechanism.adjacency, rounds * self.program.distance
        if distance == 0:
            return self.privacy.report(self.delta, adjacency, rounds).epsilon
        # Epsilon at half of delta is an upper bound on epsilon, and so bounds the factor.
        factor = 1 + Fraction(math.exp(self.privacy.report(self.delta / 2, adjacency, rounds).epsilon) * (1 + 1e-12))
        rest = Fraction(self.delta) - factor * distance
        if rest < Fraction(self.delta) / 2:
            raise InfeasibleError(f"delta must be at least {float(2 * factor * distance):g} for noise from a table, got {self.delta!r}")
        exact = float(rest)
        return self.privacy.report(math.nextafter(exact, 0.0) if Fraction(exact) > rest else exact, adjacency, rounds).epsilon

    @property
    def privacy_words(self) -> str:
        """The guarantee of all rounds together, in words."""
        of = "one round" if self.rounds == 1 else f"all {self.rounds} rounds together"
        guarantee = self.mechanism.guarantee
        neighbours = f"{guarantee.adjacency} adjacency, {guarantee.trust_model} trust model"
        return f"epsilon = {self.epsilon:g}, delta = {self.delta:g} for {of}, {neighbours}"

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the document, 64 hexadecimal digits."""
        return hashlib.sha256(_canonical(self._contents()).encode("ascii")).hexdigest()

    @property
    def hash_start(self) -> bytes:
        """The first 8 bytes of the hash, which messages carry."""
        return bytes.fromhex(self.hash)[:HASH_BYTES]

    @property
    def full_name(self) -> str:
        """The name, or the mechanism's name with the start of the hash."""
        return self.name or f"{self.mechanism_name}-{self.hash[:8]}"

    @property
    def identifier(self) -> str:
        """The name as an identifier of programming languages."""
        return self.full_name.replace("-", "_")

    @property
    def carries_index(self) -> bool:
        """Whether a message stands beside its client's index, from which public words are derived."""
        return self.program.public_words > 0

    @property
    def record_bytes(self) -> int:
        """Number of bytes of a client's record in a file: the index, if it is carried, and the message."""
        return 8 * self.carries_index + self.program.message_bytes

    @property
    def input_kind(self) -> str:
        """``"number"``, ``"vector"`` or ``"item"``."""
        return {Interval: "number", NormBall: "vector", Categories: "item"}[type(self.mechanism.domain)]

    @property
    def table(self) -> LookupTable | None:
        """The lookup table, if the mechanism draws from one."""
        return getattr(self.mechanism, "table", None)

    def aggregate(self, fields: IntegerArray, public: WordArray) -> NDArray[Any]:
        """Return the aggregate of messages from their fields and public words."""
        program = self.program
        return (
            self.mechanism.aggregate(program.messages(fields, public)) if program.aggregate is None else program.aggregate(fields, public)
        )

    def description(self) -> ClientDescription:
        """Return what the clients' source code states."""
        domain = self.mechanism.domain
        return ClientDescription(
            name=self.full_name,
            identifier=self.identifier,
            title=f"{self.mechanism_name}, {self.program.message_bits} bits a message",
            guarantee=f"Guarantee: {self.privacy_words}.",
            mechanism=self.mechanism_name,
            hash=self.hash,
            version=self.version,
            input=self.input_kind,
            dimension=domain.dimension if isinstance(domain, NormBall) else None,
            categories=domain.size if isinstance(domain, Categories) else None,
            program=self.program,
        )

    def document(self) -> dict[str, Any]:
        """Return the deployment as a JSON document, with its hash; all numbers that could lose digits are texts."""
        return {**self._contents(), "sha256": self.hash}

    def with_clients(self, clients: int) -> "Deployment":
        """Return the deployment with the guarantee for another number of clients; its hash is another one."""
        return self if clients == self.mechanism.joint_clients else replace(self, mechanism=self.mechanism.for_clients(clients))

    def is_expired(self, today: date) -> bool:
        """Return whether a day is after the last day on which clients should send messages."""
        return self.valid_until is not None and today > date.fromisoformat(self.valid_until)

    def check_round(self, round_number: int) -> int:
        """Return the number of a round if the deployment has it."""
        return check_integer("round_number", round_number, low=0, high=self.rounds - 1)

    def decoder(self, round_number: int = 0) -> "Decoder":
        """Return a decoder of messages of a round, which has seen none."""
        from .decoder import Decoder

        return Decoder(self, round_number)

    def _contents(self) -> dict[str, Any]:
        guarantee, program = self.mechanism.guarantee, self.program
        kind = type(self.mechanism)
        return {
            "format": FORMAT,
            "name": self.name,
            "mechanism": self.mechanism_name,
            "class": f"{kind.__module__}:{kind.__qualname__}",
            "parameters": {item.name: _document_of(getattr(self.mechanism, item.name)) for item in fields(self.mechanism)},  # type: ignore[arg-type]
            "guarantee_per_message": {"epsilon": repr(guarantee.epsilon), "delta": repr(guarantee.delta)},
            "metric": guarantee.metric,
            "adjacency": guarantee.adjacency,
            "trust_model": guarantee.trust_model,
            "rounds": self.rounds,
            "client_budget": {"epsilon": repr(self.epsilon), "delta": repr(self.delta)},
            "clients": self.mechanism.joint_clients,
            "bits_per_client": repr(self.mechanism.bits_per_client),
            "message": {"fields": program.fields, "field_bits": program.field_bits, "bytes": program.message_bytes},
            "public_words": program.public_words,
            "client": program.client.__name__,
            "constants": {name: _text_of(value) for name, value in program.constants.items()},
            "realised_epsilon": None if program.realised_epsilon is None else repr(program.realised_epsilon),
            "valid_until": self.valid_until,
            "supersedes": self.supersedes,
            "version": self.version,
        }


def deployment_of(document: dict[str, Any], table: LookupTable | None) -> Deployment:
    """Return the deployment of a document, recomputed from the mechanism's parameters.

    Parameters
    ----------
    document : dict
        A document of `Deployment.document`.
    table : LookupTable or None
        The table that the document names.

    Raises
    ------
    DataError
        If the document is no deployment, or states anything that its parameters do not give.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        stated = document.get("format") if isinstance(document, dict) else document
        raise DataError(f"format must be {FORMAT!r}, got {str(stated)[:80]!r}")
    try:
        mechanism = _mechanism_of(document["class"], document["parameters"], table)
        deployment = Deployment(
            mechanism,
            document["mechanism"],
            document["rounds"],
            float(document["client_budget"]["delta"]),
            document["name"],
            document["valid_until"],
            document["supersedes"],
            document["version"],
        )
        computed = deployment.document()
    except (KeyError, TypeError, AttributeError, ArithmeticError, IndexError, RecursionError) as error:
        raise DataError(f"the deployment lacks or misstates a field: {type(error).__name__}: {str(error)[:200]}") from None
    for key in sorted({*computed, *document}):
        # JSON texts distinguish 1, 1.0 and true, which are equal in Python.
        if key not in computed or key not in document or _canonical(computed[key]) != _canonical(document[key]):
            stated, given = (_short(values[key]) if key in values else "nothing" for values in (document, computed))
            raise DataError(f"{key} differs: the file states {stated}, the mechanism's parameters give {given}")
    return deployment


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _mechanism_of(class_name: str, parameters: dict[str, Any], table: LookupTable | None) -> Mechanism:
    module, _, name = class_name.partition(":")
    kind = getattr(_trusted_module(module), name, None)
    if not (isinstance(kind, type) and issubclass(kind, Mechanism) and is_dataclass(kind)):
        raise DataError(f"class must be a mechanism, got {class_name[:80]!r}")
    return kind(**{key: _value_of(value, table) for key, value in parameters.items()})


def _trusted_module(module: str) -> Any:
    """Return a module of quietbits, or one that is imported already: a file must not have code imported that it names."""
    import sys

    package = __name__.partition(".")[0]
    if re.fullmatch(rf"{package}\.design(\.[a-z_]+)+", module):
        try:
            return importlib.import_module(module)
        except ImportError:
            pass
    if module in sys.modules:
        return sys.modules[module]
    raise DataError(f"class must be of quietbits, or of a registered package that is imported, got module {module[:80]!r}")


def _document_of(value: Any) -> Any:
    if isinstance(value, LookupTable):
        return {"table": TABLE_FILE, "sha256": table_document(value)["sha256"]}
    if type(value).__name__ in NESTED:
        return {type(value).__name__: {item.name: _document_of(getattr(value, item.name)) for item in fields(value)}}
    if isinstance(value, tuple):
        return [_document_of(item) for item in value]
    if isinstance(value, float):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | str):
        return value
    raise InfeasibleError(f"mechanism must have parameters that a file can state, got {type(value).__name__}")


def _value_of(document: Any, table: LookupTable | None) -> Any:
    if isinstance(document, list):
        return tuple(_value_of(item, table) for item in document)
    if not isinstance(document, dict):
        return document
    if "table" in document:
        if table is None or table_document(table)["sha256"] != document["sha256"]:
            raise DataError(f"{TABLE_FILE} must be the table with sha256 {str(document['sha256'])[:64]}, got another one or none")
        return table
    if len(document) != 1:
        raise DataError(f"parameters must be numbers, texts, tables or domains, got {_short(document)}")
    ((kind, value),) = document.items()
    if kind == "float":
        return float(value)
    if kind not in NESTED:
        raise DataError(f"parameters must be numbers, texts, tables or domains, got {kind[:80]!r}")
    return NESTED[kind](**{name: _value_of(item, table) for name, item in value.items()})


def _text_of(value: Any) -> Any:
    return [_text_of(item) for item in value] if isinstance(value, tuple) else repr(value)
