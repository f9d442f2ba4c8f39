"""How fast a run gets on with a server that refuses and breaks off calls, beside what its refusals allow.

    python -m benchmarks.faults [--quick] [NAME ...]           # needs vibe-harness[dev]

Exit status 1 where an aim is missed. --quick: fewer requests, and fewer mixtures.
The bound: the seconds that the server spent on all calls, shared by the 32 at once, and the longest sum of waits that
it announced to one request; for a server with a limit of its own, what that limit allows. "refused" counts the calls
that a limit refused, for each that was answered: a server must not be asked for much more than it gives.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from benchmarks.figures import status, tell
from tests.refusing_server import Mixture, RefusingServer
from vibe_harness.backends.remote.gemini import GeminiEngine
from vibe_harness.backends.remote.openai_server import OpenAIEngine
from vibe_harness.cards.schema import ModelCard
from vibe_harness.records import Generation, Outcome, Request

AT_ONCE = 32
MIXTURES = {
    "no faults": Mixture(),
    "10 % 429, Retry-After 1": Mixture({"limited": 0.1}),
    "30 % 429, Retry-After 2": Mixture({"limited": 0.3}, wait_s=2.0),
    "5 % 503": Mixture({"unavailable": 0.05}),
    "20 % overloaded": Mixture({"overloaded": 0.2}),
    "15 % broken": Mixture(dict.fromkeys(("broken", "reset", "half", "bad_json", "broke_off"), 0.03)),
    "all kinds": Mixture(
        dict.fromkeys(("limited", "limited_in_body", "limited_until_reset", "limited_in_200", "unavailable"), 0.03)
        | dict.fromkeys(("broken", "reset", "half", "bad_json"), 0.02)
    ),
    "50 a second": Mixture(per_second=50.0, burst=10),
    "5 a second": Mixture(per_second=5.0, burst=5),
    "6 at once": Mixture(at_once=6),
    "a quota's pause of 6 s": Mixture(quota=(400, 6.0)),
}
QUICK = ("10 % 429, Retry-After 1", "5 % 503", "50 a second")


def measure(name: str, mixture: Mixture, dialect: str, count: int) -> None:
    """Ask one server, and tell how fast it went."""
    with RefusingServer(mixture) as server:
        settings = {"base_url": server.url if dialect == "openai" else server.base, "concurrency": AT_ONCE}
        card = ModelCard(model="m", backend=dialect, id="loopback", connection=settings)
        engine = OpenAIEngine(card, ()) if dialect == "openai" else GeminiEngine(card, ())
        start = time.perf_counter()
        responses = list(engine.generate(Request(f"{i}", "t", "v", "c", f"{i}", Generation(8)) for i in range(count)))
        took = time.perf_counter() - start
        engine.close()
        seen = server.seen()
    lost = sum(response.outcome is not Outcome.OK for response in responses)
    refused = sum(seen["played"].get(kind, 0) for kind in ("too_fast", "crowded", "quota"))
    bound = seen["slot_s"] / AT_ONCE + seen["longest_wait_s"]
    if mixture.per_second is not None:
        bound = (count - mixture.burst) / mixture.per_second
    if mixture.at_once is not None:
        bound = count * mixture.latency_s / mixture.at_once
    beside = f"{took:.1f} s; calls {sum(seen['calls'].values())}, too early {seen['early']}"
    label = f"{name}, {dialect}"
    tell(label, bound / took, "of the bound", "at least 0.8", bound / took >= 0.8, beside)
    if mixture.per_second or mixture.at_once or mixture.quota:
        most = 2 * AT_ONCE / count + (0.0 if mixture.quota else 0.1)  # until the limit is learnt, and after
        tell(f"{label}: refused", refused / count, "a request", f"at most {most:.2f}", refused / count <= most)
    tell(f"{label}: lost", lost + seen["early"], "requests", "none", lost + seen["early"] == 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of mixtures, by their first letters; all by default")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("GEMINI_API_KEY", "of-no-use-to-anybody")
    wanted = [name for name in MIXTURES if name.startswith(tuple(options.names or ("",)))]
    for name in [name for name in wanted if name in QUICK] if options.quick else wanted:
        mixture = MIXTURES[name]
        few = mixture.per_second is not None or mixture.at_once is not None
        count = (300 if few else 600) if options.quick else (150 if mixture.per_second == 5 else 1000 if few else 2000)
        for dialect in ("openai",) if options.quick or few else ("openai", "gemini"):
            measure(name, mixture, dialect, count)
    return status()


if __name__ == "__main__":
    sys.exit(main())
