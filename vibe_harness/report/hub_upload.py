"""Upload of a finished run to the hub, as a data set; see `dataset_folder`."""

from __future__ import annotations

import importlib
import importlib.util
import re
import tempfile
from pathlib import Path

from vibe_harness.errors import EngineError, UserError
from vibe_harness.report.dataset_folder import write_dataset
from vibe_harness.store.run_folder import RunFolder

TARGET = re.compile(r"hub:([\w.-]+/[\w.-]+)")


def push_run(folder: RunFolder, target: str, *, public: bool = False) -> str:
    """Upload a finished run to "hub:ORG/NAME" as one commit, and return the address of the data set.

    The data set is made if it does not exist, and is private unless `public`. Endpoint and key are those of
    huggingface_hub: HF_ENDPOINT, and HF_TOKEN or `hf auth login`. Raises UserError if the run is not finished, the
    target is no such name or the hub refuses, and EngineError if the hub cannot be reached.
    """
    match = TARGET.fullmatch(target)
    if match is None:
        raise UserError(f"{target}: write where to as hub:ORG/NAME, a data set on the hub")
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    api, repo = HfApi(), match[1]
    with tempfile.TemporaryDirectory(prefix="vibe-harness-push-") as aside:
        copy = write_dataset(folder, Path(aside) / "dataset")
        try:
            created = api.create_repo(repo, repo_type="dataset", private=not public, exist_ok=True)
            api.upload_folder(
                folder_path=copy, repo_id=repo, repo_type="dataset", commit_message=f"Run {folder.path.resolve().name}"
            )
        except LocalTokenNotFoundError:
            raise UserError("the hub needs a key that may write: set HF_TOKEN, or type `hf auth login`") from None
        except HfHubHTTPError as error:
            said = " ".join(str(error.server_message or error).split())[:300]
            raise UserError(
                f"the hub refuses the upload to {repo}: {said}. A key that may write there is needed: HF_TOKEN, or `hf "
                "auth login`"
            ) from None
        except _unreachable() as error:
            said = " ".join(str(error).split())[:300]
            raise EngineError(f"the hub cannot be reached ({type(error).__name__}: {said}): try again") from None
    return str(created)


def _unreachable() -> tuple[type[Exception], ...]:
    """What huggingface_hub raises where no hub answers: errors of httpx2 or httpx, by its version, or OSError."""
    found: list[type[Exception]] = [OSError]
    for name in ("httpx2", "httpx"):
        if importlib.util.find_spec(name) is not None:
            found.append(importlib.import_module(name).HTTPError)
    return tuple(found)
