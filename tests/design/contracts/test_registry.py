"""Options, values and entries: every error message, and the JSON documents."""

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from quietbits.design.contracts.accounts import pure_privacy
from quietbits.design.contracts.domains import Interval
from quietbits.design.contracts.gaussian import central_gaussian_error
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.registry import (
    REQUIRED,
    AccountSubject,
    Budget,
    Entry,
    Noise,
    Option,
    Values,
    check_values,
    usual_adjacency,
)
from quietbits.design.contracts.task import Task
from quietbits.design.local.laplace import VectorLaplaceMechanism
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling

BITS = Option("bits", int, "Bits of a message.", 8, 1, 20, "bits")
SHARE = Option("share", float, "A share.", low=0.0, high=1.0)
NAME = Option("name", str, "A name.", "one", choices=("one", "two"))
NORM = Option("norm", str, "A norm.", numeric=True)
SWITCH = Option("switch", bool, "A switch.", default=True, flags="--on/--off")
FOLDER = Option("folder", Path, "A folder.", None)
OPTIONS = (BITS, SHARE, NAME, SWITCH, FOLDER)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        (BITS, 21, "bits must be a whole number from 1 to 20, got 21"),
        (BITS, 2.5, "bits must be a whole number from 1 to 20, got 2.5"),
        (BITS, True, "bits must be a whole number from 1 to 20, got True"),
        (BITS, None, "bits must be a whole number from 1 to 20, got None"),
        (SHARE, 1.5, "share must be a number from 0 to 1, got 1.5"),
        (SHARE, math.nan, "share must be a number from 0 to 1, got nan"),
        (SHARE, "half", "share must be a number from 0 to 1, got 'half'"),
        (NAME, "three", "name must be one of one, two, got 'three'"),
        (NAME, 1, "name must be a text, got 1"),
        (NORM, True, "norm must be a number or a text, got True"),
        (SWITCH, 1, "switch must be true or false, got 1"),
    ],
)
def test_a_bad_value_is_refused_by_its_options_name(option: Option, value: object, message: str) -> None:
    with pytest.raises(ValueError, match="must be") as refused:
        option.check(value)
    assert str(refused.value) == message


def test_values_come_back_as_their_kind() -> None:
    assert (BITS.check(3), SHARE.check(1), NAME.check("two"), SWITCH.check(False)) == (3, 1.0, "two", False)
    assert isinstance(SHARE.check(1), float)
    assert [NORM.check(norm) for norm in (2, 2.0, 1.1, math.inf, "l2")] == ["2", "2", "1.1", "inf", "l2"]
    assert FOLDER.check("tables") == Path("tables")
    # An option whose default is None accepts None.
    assert FOLDER.check(None) is None
    assert Option("anything", float, "Any number.").check(-1e300) == -1e300


def test_values_are_checked_and_filled_in() -> None:
    assert check_values("this", OPTIONS, {"share": 0.5, "bits": 4}) == {
        "bits": 4,
        "share": 0.5,
        "name": "one",
        "switch": True,
        "folder": None,
    }
    with pytest.raises(ValueError, match=r"^share is missing: this needs share$"):
        check_values("this", OPTIONS, {"bits": 4})
    with pytest.raises(ValueError, match=r"^bit is not a parameter of this: it has bits, share, name, switch, folder; got bit = 4$"):
        check_values("this", OPTIONS, {"bit": 4})
    with pytest.raises(ValueError, match=r"^bit is not a parameter of this: it has none; got bit = 4$"):
        check_values("this", (), {"bit": 4})
    with pytest.raises(ValueError, match="bits must be a whole number from 1 to 20, got 0"):
        check_values("this", OPTIONS, {"share": 0.5, "bits": 0})


def test_options_are_documents() -> None:
    assert json.loads(json.dumps([SHARE.document(), BITS.document(), NAME.document()], allow_nan=False)) == [
        {
            "name": "share",
            "type": "float",
            "help": "A share.",
            "required": True,
            "default": None,
            "low": 0.0,
            "high": 1.0,
            "choices": [],
            "unit": None,
        },
        {
            "name": "bits",
            "type": "int",
            "help": "Bits of a message.",
            "required": False,
            "default": 8,
            "low": 1,
            "high": 20,
            "choices": [],
            "unit": "bits",
        },
        {
            "name": "name",
            "type": "str",
            "help": "A name.",
            "required": False,
            "default": "one",
            "low": None,
            "high": None,
            "choices": ["one", "two"],
            "unit": None,
        },
    ]
    assert (SHARE.required, BITS.required, repr(REQUIRED)) == (True, False, "required")


def test_reports_of_what_is_accounted_for_are_documents() -> None:
    ball = NormBall(4, 2.0)
    subject = AccountSubject("something", pure_privacy(0.5), "replace-one", 3.0, {"scale": math.inf, "kind": "a"}, ball=ball, clients=10)
    report = subject.report(1e-3, rounds=4)
    document = json.loads(json.dumps(report.document(), allow_nan=False))
    assert (document["mechanism"], document["bits_per_client"], document["scale"], document["kind"]) == ("something", 3.0, None, "a")
    assert (document["rounds"], document["epsilon"], document["method"]) == (4, report.epsilon, "pld")
    assert document["accounts"]["pure"]["epsilon"] == report.epsilon_by("pure") == 2.0
    assert report.epsilon_by(None) == report.epsilon
    # The reference is a trusted server's noise over the same rounds.
    assert document["squared_error_gaussian"] == 4 * central_gaussian_error(ball, 10, report.epsilon, 1e-3, "replace-one")
    # Without vectors, or with delta out of range, there is no reference.
    assert subject.report(0.0).document()["squared_error_gaussian"] is None
    assert "squared_error_gaussian" not in AccountSubject("something", pure_privacy(0.5), "replace-one").report(1e-3).document()


def test_the_usual_adjacency_is_that_of_the_sampling() -> None:
    both = ("add-or-remove-one", "replace-one")
    assert usual_adjacency(None, None, both) == "add-or-remove-one"
    assert usual_adjacency(None, PoissonSampling(0.1), both) == "add-or-remove-one"
    assert usual_adjacency(None, FixedSizeSampling(9, 3), both) == "replace-one"
    assert usual_adjacency("replace-one", PoissonSampling(0.1), both) == "replace-one"
    with pytest.raises(ValueError, match="adjacency must be one of replace-one, got 'add-or-remove-one'"):
        usual_adjacency("add-or-remove-one", None, ("replace-one",))


# Tests of entries


def noise(task: Task, _: Values) -> Mechanism:
    return VectorLaplaceMechanism(task.epsilon / task.rounds, task.ball("noise", (1.0, math.inf)))


def entry(**changes: Any) -> Entry:
    fields: dict[str, Any] = {
        "name": "noise",
        "title": "Noise",
        "paper": "Somebody 2020, Something",
        "domains": (NormBall,),
        "trust_model": "local",
        "adjacencies": ("replace-one",),
        "accounts": ("pure", "rdp", "pld"),
        "options": (BITS,),
        "build": noise,
        "norms": (math.inf, 1.0),
    }
    return Entry(**(fields | changes))


def test_an_entry_builds_with_checked_options() -> None:
    task = Task(NormBall(2, 1.0), 5, 1.0, 0.0, "replace-one")
    assert entry().mechanism_for(task) == VectorLaplaceMechanism(1.0, task.ball("noise"))
    with pytest.raises(ValueError, match="bits must be a whole number from 1 to 20, got 0"):
        entry().mechanism_for(task, {"bits": 0})
    assert entry().lower_bound(task) is None


def test_an_entry_is_a_document() -> None:
    document = json.loads(json.dumps(entry().document(), allow_nan=False))
    assert (document["domains"], document["norms"]) == (["NormBall"], ["inf", 1.0])
    assert [item["name"] for item in document["parameters"]] == ["epsilon", "dimension", "norm", "clip", "bits"]


def test_a_pure_mechanism_is_accounted_for_by_what_is_built_for_an_epsilon_of_one_round() -> None:
    own = entry()
    assert [option.name for option in own.account_options] == ["epsilon", "dimension", "norm", "clip", "bits"]
    assert [option.name for option in own.calibration_options] == ["dimension", "norm", "clip", "clients", "bits"]
    values = check_values("noise", own.account_options, {"dimension": 3, "epsilon": 0.5}) | {"delta": 1e-6}
    # The default norm is the first of the entry's norms.
    assert (values["norm"], values["clip"]) == ("inf", 1.0)
    subject = own.account(values, None, None)
    assert subject.report(1e-6, 3).epsilon == VectorLaplaceMechanism(0.5, NormBall(3, math.inf)).privacy().epsilon(1e-6, rounds=3)
    assert subject.bits_per_client == 192.0
    assert (subject.details["epsilon_per_round"], subject.details["dimension"], subject.details["bits"]) == (0.5, 3, 8)
    with pytest.raises(ValueError, match="sampling must be left out in the local trust model"):
        own.account(values, "replace-one", PoissonSampling(0.5)).report(1e-6, sampling=PoissonSampling(0.5))


def test_calibration_is_what_is_built_for_the_task() -> None:
    own, budget = entry(), Budget(1.0, 1e-6, "replace-one", 4)
    subject = own.calibrate(budget, check_values("noise", own.calibration_options, {"dimension": 3}))
    task = subject.task
    assert task is not None
    assert (task.budget, task.domain, task.clients) == (budget, NormBall(3, math.inf), 1)
    assert subject.details["epsilon_per_round"] == 0.25
    assert subject.report(1e-6, 4).epsilon == own.mechanism_for(task).privacy().epsilon(1e-6, rounds=4) <= 1.0
    # Without a dimension, the result has the epsilon of one round only.
    bare = own.calibrate(budget, check_values("noise", own.calibration_options, {}))
    assert (bare.task, bare.bits_per_client) == (None, None)
    assert bare.report(1e-6, 4).epsilon <= 1.0


def test_an_account_that_the_mechanism_is_not_built_for_is_refused() -> None:
    # With delta = .2, Laplace noise of epsilon 2 keeps epsilon = 1.9 by its privacy loss, but not by pure privacy.
    own = entry(build=lambda task, _: VectorLaplaceMechanism(2.0, task.ball("noise")))
    values = check_values("noise", own.calibration_options, {"dimension": 3})
    assert own.calibrate(Budget(1.9, 0.2, "replace-one"), values).report(0.2).epsilon < 1.9
    with pytest.raises(
        ValueError, match="method must be left out for noise, which is built for what is proven, got 'pure': by that account"
    ):
        own.calibrate(Budget(1.9, 0.2, "replace-one", method="pure"), values)


def test_clients_must_be_given_where_the_guarantee_rests_on_them_and_numbers_have_no_dimension() -> None:
    summed = entry(trust_model="secure-sum").calibration_options
    assert [option.name for option in summed if option.required] == ["dimension", "clients"]
    numbers = entry(domains=(Interval,)).calibration_options
    assert [option.name for option in numbers] == ["low", "high", "clients", "bits"]
    either = entry(domains=(Interval, NormBall)).calibration_options
    assert [option.name for option in either if option.required] == []


def test_noise_has_an_account_of_its_own() -> None:
    bare = Noise("noise", "Noise", (SHARE,), lambda values, *_: AccountSubject("noise", pure_privacy(values["share"]), "replace-one"))
    own = entry(noise=bare, on_real_numbers=True)
    assert own.account_options == (SHARE,)
    subject = own.account({"share": 0.5}, None, None)
    assert (subject.report(0.0).epsilon, subject.details["on_real_numbers"]) == (0.5, True)


def sent_noise(low: int = 1, budget: str = "coordinate") -> Entry:
    """Return the entry of a noise mechanism with 8 bits per coordinate and 2 extra coordinates."""

    @dataclass(frozen=True)
    class Padded(VectorLaplaceMechanism):
        bits: int = 8

        @property
        def bits_per_client(self) -> float:
            return float(self.bits * (self.ball.dimension + 2))

    def build(task: Task, values: Values) -> Padded:
        if values["bits"] < 4:
            raise InfeasibleError(f"bits must be at least 4 for noise, got {values['bits']}")
        return Padded(task.epsilon, task.ball("noise"), bits=values["bits"])

    return entry(options=(replace(BITS, low=low, budget=budget),), build=build)


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"bits": 0.5}, "bits must be at least 1 a coordinate for noise, got 0.5: its message has 2 bits for 2 coordinates"),
        ({"message_bits": 1}, "message_bits must be at least 2 for noise, got 1"),
        # The error quotes the given number, or the number that follows from it.
        ({"bits": 3}, "bits must be at least 4 for noise, got 3"),
        ({"bits": 3.7}, "bits must be at least 4 for noise, got 3, the most that bits = 3.7 allows"),
        ({"message_bits": 7}, "bits must be at least 4 for noise, got 3, the most that message_bits = 7 allows"),
        ({"bits": 6}, "bits must be at least 4 for noise, got 3, the most that bits = 6 allows"),
    ],
)
def test_too_few_bits_are_refused_as_they_were_typed(limit: dict[str, float], message: str) -> None:
    task = Task(NormBall(2, 1.0), 5, 1.0, 0.0, "replace-one", **limit)
    with pytest.raises(InfeasibleError, match="must be at least") as refused:
        sent_noise().mechanism_for(task)
    assert str(refused.value) == message


def test_a_limit_on_the_message_fills_in_what_padding_leaves() -> None:
    for limit in ({"bits": 12.0}, {"message_bits": 24.0}):
        mechanism = sent_noise().mechanism_for(Task(NormBall(2, 1.0), 5, 1.0, 0.0, "replace-one", **limit))
        assert mechanism.bits_per_client == 24
    with pytest.raises(InfeasibleError, match=r"bits must be at least 10\.02 a coordinate for noise, got 10"):
        Entry.mechanism_for(sent_noise(), Task(NormBall(1001, 1.0), 5, 1.0, 0.0, "replace-one", bits=10), {"bits": 10})


def test_what_is_no_task_is_refused() -> None:
    with pytest.raises(ValueError, match="task must be a Task, got 100"):
        entry().mechanism_for(100)  # type: ignore[arg-type]
