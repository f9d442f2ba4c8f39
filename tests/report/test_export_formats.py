"""A run in the formats of others: Every Eval Ever, the hub's .eval_results, a data set; and its upload to a hub."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

import vibe_harness
from tests.command_line import QuickCommand
from vibe_harness.errors import EngineError, UserError
from vibe_harness.store.checksums import write_sums
from vibe_harness.store.run_folder import RunFolder


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the simulated model by two dimensions."""
    folder = tmp_path_factory.mktemp("exports") / "run"
    vibe_harness.evaluate(
        "simulated", ["advisory"], "demo", dimensions=["gender"], limit=16, tau=1, permutations=49, output_path=folder
    )
    return folder


@pytest.fixture
def run(simulated: Path, tmp_path: Path) -> Path:
    """The same as if a real model on a hub had given these answers, reliably."""
    folder = RunFolder(Path(shutil.copytree(simulated, tmp_path / "run")))
    data = json.loads(folder.run_json.read_text(encoding="utf-8"))
    data["asked"]["model"] |= {"simulated": False, "id": "org/m"}
    data["record"]["model"] |= {"simulated": False, "id": "org/m"}
    folder.run_json.write_text(json.dumps(data), encoding="utf-8")
    edit_results(folder, reliable=True)
    return folder.path


def edit_results(folder: RunFolder, **task: Any) -> None:
    """Set fields of the first task's result."""
    results = json.loads(folder.results.read_text(encoding="utf-8"))
    results["simulated"] = False
    results["tasks"][0] |= task
    folder.results.write_text(json.dumps(results), encoding="utf-8")
    write_sums(folder)


def test_every_eval_ever(run: Path, tmp_path: Path) -> None:
    path, left_out = vibe_harness.export_run(run, "every-eval-ever", tmp_path, organization="Us")
    assert path.parent == tmp_path / "data" / "vibe-harness" / "org" / "m"
    record = json.loads(path.read_text(encoding="utf-8"))
    assert set(record) == {
        "schema_version", "evaluation_id", "evaluation_timestamp", "retrieved_timestamp", "source_metadata",
        "eval_library", "model_info", "evaluation_results",
    }  # fmt: skip
    assert record["source_metadata"]["source_organization_name"] == "Us"
    assert record["model_info"]["id"] == "org/m" and record["model_info"]["developer"] == "org"
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    scores = [score for score in results["tasks"][0]["scores"] if score["metric"] == "ntvd"]
    found = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
    assert len(found) == len(record["evaluation_results"])
    for score in scores:
        name = "/".join(["advisory/default/gender/ntvd", *([score["attribute"]] if score["attribute"] else [])])
        assert found[name]["score_details"]["score"] == score["value"]
    [whole] = [one for one in record["evaluation_results"] if one["evaluation_name"] == "advisory by gender"
               and one["metric_config"]["metric_id"] == "ntvd"]  # fmt: skip
    config = whole["metric_config"]
    assert (config["lower_is_better"], config["min_score"], config["max_score"]) == (True, 0, 100)
    assert config["metric_parameters"]["tau"] == 1 and whole["generation_config"]["generation_args"]["max_tokens"] > 0
    assert all(isinstance(value, str) for value in whole["score_details"]["details"].values())
    assert whole["score_details"]["details"]["p_value"]
    assert any("diversity: its metric does not say which figures are better" in line for line in left_out)
    schemas = pytest.importorskip("every_eval_ever").__path__[0]
    import jsonschema

    schema = json.loads((Path(schemas) / "schemas" / "eval.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(schema).validate(record)


def test_eval_results_of_the_hub(run: Path, tmp_path: Path) -> None:
    path, _ = vibe_harness.export_run(run, "eval-results", tmp_path, benchmark="us/voices")
    assert path.parent == tmp_path / ".eval_results" and path.suffix == ".yaml"
    written = yaml.safe_load(path.read_text(encoding="utf-8"))
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    value = next(score["value"] for score in results["tasks"][0]["scores"] if score["attribute"] is None)
    hub = pytest.importorskip("huggingface_hub", minversion="1.4")
    [entry] = hub.parse_eval_result_entries(written)  # the hub's own reader
    assert (entry.dataset_id, entry.task_id, entry.value) == ("us/voices", "advisory-gender", round(value, 4))
    assert "nTVD" in entry.notes and "corpus demo" in entry.notes
    assert hub.eval_result_entries_to_yaml([entry]) == written
    for name in ("voices", "a/b/c", "/b", "a/"):
        with pytest.raises(UserError, match="ORG/NAME"):
            vibe_harness.export_run(run, "eval-results", tmp_path, benchmark=name)


@pytest.mark.parametrize(("form", "more"), [("every-eval-ever", {"organization": "Us"}),
                                            ("eval-results", {"benchmark": "us/voices"})])  # fmt: skip
def test_scores_that_say_nothing_are_left_out_by_name(
    run: Path, simulated: Path, tmp_path: Path, form: str, more: dict[str, str]
) -> None:
    edit_results(RunFolder(run), reliable=False, warnings=["half was not read"])
    with pytest.raises(UserError, match=r"no score can be exported: advisory.*: not reliable: half was not read"):
        vibe_harness.export_run(run, form, tmp_path / "out", **more)
    assert not (tmp_path / "out").exists()
    with pytest.raises(UserError, match="a simulated model gave these answers"):
        vibe_harness.export_run(simulated, form, tmp_path / "out", **more)
    with pytest.raises(UserError, match=r"--organization|--benchmark"):
        vibe_harness.export_run(run, form, tmp_path / "out")


def test_a_data_set_is_read_by_datasets_and_is_still_a_run(simulated: Path, tmp_path: Path) -> None:
    import datasets

    out, _ = vibe_harness.export_run(simulated, "dataset", tmp_path / "out")
    for name, rows in {"observations": 16, "responses": 16, "requests": 16, "clips": 16}.items():
        found = datasets.load_dataset(str(out), name, split="train", cache_dir=str(tmp_path / "cache"))
        assert found.num_rows == rows, name
    assert vibe_harness.check_run(out).faults == []
    assert len(vibe_harness.observations(out)) == 16
    written = (out / "run.json").read_text(encoding="utf-8")
    assert str(simulated) not in written and str(tmp_path) not in written
    assert json.loads(written)["record"]["corpus_folder"] is None
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "| advisory | gender |" in card and "simulated: no real model" in card
    with pytest.raises(UserError, match="not an empty folder"):
        vibe_harness.export_run(simulated, "dataset", out)
    (simulated / "responses.jsonl").touch()
    damaged = Path(shutil.copytree(simulated, tmp_path / "damaged"))
    with (damaged / "responses.jsonl").open("a", encoding="utf-8") as file:
        file.write("{}\n")
    with pytest.raises(UserError, match="changed since the run was scored"):
        vibe_harness.export_run(damaged, "dataset", tmp_path / "other")


class Hub(BaseHTTPRequestHandler):
    """What huggingface_hub asks of a hub to make a data set and commit files to it."""

    files: dict[str, bytes]
    made: list[dict[str, Any]]
    refuses: bool
    address: str

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.refuses:
            return self._reply({"error": "You don't have the rights"}, 403)
        if self.path == "/api/repos/create":
            self.made.append(json.loads(body))
            return self._reply({"url": f"{self.address}/datasets/us/run", "name": "us/run"})
        if "/preupload/" in self.path:
            files = [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                     for one in json.loads(body)["files"]]  # fmt: skip
            return self._reply({"files": files})
        if "/commit/" in self.path:
            import base64

            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            url = f"{self.address}/datasets/us/run/commit/0"
            return self._reply({"commitUrl": url, "commitOid": "0" * 40, "success": True})
        return self._reply({"valid": True})

    def do_GET(self) -> None:
        self._reply({"id": "us/run", "siblings": [], "sha": "0" * 40})

    def _reply(self, data: dict[str, Any], status: int = 200) -> None:
        payload = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def hub(monkeypatch: pytest.MonkeyPatch, refuses: bool = False) -> Iterator[type[Hub]]:
    """A hub of its own, in place of the real one."""
    import huggingface_hub

    handler = type("OwnHub", (Hub,), {"files": {}, "made": [], "refuses": refuses})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    handler.address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", handler.address)  # as HF_ENDPOINT sets it
    monkeypatch.setenv("HF_TOKEN", "hf_of_no_use")
    try:
        yield handler
    finally:
        server.shutdown()
        server.server_close()


def test_a_run_is_pushed_as_one_private_data_set(
    simulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hub(monkeypatch) as served:
        done = QuickCommand(tmp_path)("push", simulated, "hub:us/run", check=0)
        assert "us/run" in done.stdout
    [made] = served.made
    assert (made["organization"], made["name"], made["type"]) == ("us", "run", "dataset")
    assert made.get("private") is True or made.get("visibility") == "private"
    for name, content in served.files.items():
        (tmp_path / "down" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "down" / name).write_bytes(content)
    assert vibe_harness.check_run(tmp_path / "down").faults == []
    assert "README.md" in served.files and not any(name.endswith((".wav", ".ogg", ".lock")) for name in served.files)


def test_a_hub_that_refuses_or_is_not_there_is_told_in_one_line(
    simulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hub(monkeypatch, refuses=True) as served:
        told = QuickCommand(tmp_path).refuses("push", simulated, "hub:us/run")
        assert "the hub refuses the upload to us/run" in told and len(told.splitlines()) == 1 and not served.files
    with pytest.raises(EngineError, match="the hub cannot be reached"):
        vibe_harness.push_run(simulated, "hub:us/run")
    for target in ("us/run", "hub:run", "hub:a/b/c", "hub:../x y"):
        with pytest.raises(UserError, match="hub:ORG/NAME"):
            vibe_harness.push_run(simulated, target)
