"""Scripts and issues as they are parsed: code blocks, local modules, packages."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement

from repros.diagnose.issue.code import IssueCode, find_code
from repros.model.errors import ReprosError
from repros.scripts.try_.needs import package_of
from repros.scripts.try_.script import Script, read_script
from tests.scripts.try_.conftest import Write

ISSUE = """\
### Bug description

```
Traceback (most recent call last):
  import torch
RuntimeError: no
```

First, this:

```python
x = 1
y = 2
z = 3
print(x, y, z)
```

> ```py
> !pip install torch
> import torch
>
> torch.ones(2)
> torch.ones(3)
> ```

   ~~~pycon
   >>> import torch
   >>> for _ in range(2):
   ...     torch.ones(1)
   tensor([1.])
   ~~~
"""


def test_the_longest_block_that_imports_something_is_the_script() -> None:
    code = find_code(ISSUE, "issue.md")
    assert (code.number, code.blocks, code.line) == (3, 4, 18)
    assert code.source == "# !pip install torch\nimport torch\n\ntorch.ones(2)\ntorch.ones(3)\n"


def test_a_block_may_be_named() -> None:
    code = find_code(ISSUE, "issue.md", 4)
    assert code.source == "import torch\nfor _ in range(2):\n    torch.ones(1)\n"
    with pytest.raises(ReprosError, match=r"^--block 5: issue\.md .*\b4\b"):
        find_code(ISSUE, "issue.md", 5)


@pytest.mark.parametrize("text", ["", "import torch\n", "```yaml\nimport: torch\n```\n", "```\nimport torch as\n```"])
def test_an_issue_without_a_script_is_refused(text: str) -> None:
    with pytest.raises(ReprosError, match=r"^issue\.md .*\b[01]\b"):
        find_code(text, "issue.md")


LOOSE = """\
Hello. import torch is slow, I know.

To reproduce:

import torch
from torch import nn

model = nn.Linear(2, 2)
for _ in range(3):
    print(model(torch.ones(2)))

Output

We import numpy as np elsewhere:

    import torch
    print(torch.ones(
        2))
```
a log
```
>>> import torch
>>> for i in range(2):
...     print(i)
0
1
Thanks
"""


def test_code_that_stands_in_no_block_counts_if_no_block_is_code() -> None:
    code = find_code(LOOSE, "issue.md")
    assert code == IssueCode("\n".join(LOOSE.split("\n")[4:10]) + "\n", None, 1, 5)
    assert code.location == "the code outside of blocks"
    indented = LOOSE.replace("import torch\nfrom", "torch\nfrom")
    assert find_code(indented, "issue.md").source == "\n".join(LOOSE.split("\n")[5:10]) + "\n"
    indented = indented.replace("from torch", "of torch")
    assert find_code(indented, "issue.md") == IssueCode("import torch\nprint(torch.ones(\n    2))\n", None, 1, 16)
    session = indented.replace("    import", "    imports")
    assert find_code(session, "issue.md") == IssueCode("import torch\nfor i in range(2):\n    print(i)\n", None, 1, 22)
    assert find_code(f"{LOOSE}\n```python\nimport torch\n```\n", "issue.md").location == "block 2 of 2"


def test_a_fence_may_be_longer_and_may_lack_its_end() -> None:
    code = find_code("````python\nimport torch\n```\n'''\n````\n", "issue.md", 1)
    assert code.source == "import torch\n```\n'''\n"
    assert find_code("```python\r\nimport torch\n".replace("\r", ""), "issue.md").source == "import torch\n"


def test_tabs_among_spaces_are_eight_columns_wide() -> None:
    mixed = "import torch\n\nwith torch.no_grad():\n    for _ in range(2):\n        torch.ones(1)\n\tprint(1)\n"
    code = find_code(f"```python\n{mixed}```\n", "issue.md")
    assert code.source == mixed.replace("\t", " " * 8)
    tabs = "import torch\n\nfor _ in range(2):\n\tprint('a\tb')\n"
    assert find_code(f"```python\n{tabs}```\n", "issue.md").source == tabs


def test_what_lies_beside_a_script_comes_along(write: Write) -> None:
    path = write("train.py", "import os, model\nfrom data.loader import Loader\n")
    write("model.py", "import layers\nimport torch\n")
    write("layers.py", "")
    write("other.py", "")
    (path.parent / "data").mkdir()
    write("data/loader.py", "class Loader: ...\n")
    (path.parent / "os").mkdir()
    script = read_script(path)
    assert [module.name for module in script.local_modules] == ["model.py", "data", "layers.py"]
    assert script.modules == ()
    (path.parent / "copy").mkdir()
    script.copy_to(path.parent / "copy")
    copied = sorted(str(file.relative_to("copy")) for file in (path.parent / "copy").rglob("*.py"))
    assert copied == ["data/loader.py", "layers.py", "model.py", "train.py"]


def test_needs_are_the_block_s_and_the_imports() -> None:
    source = (
        "# /// script\n# dependencies = ['Torch>=2', 'tomli; python_version < \"3\"']\n# requires-python = '>=3.9'\n"
        "# ///\nimport os, PIL.Image, torch.nn\nfrom google.protobuf import message\nfrom . import here\n"
        "def later():\n    import pandas\n"
    )
    needs = Script("a.py", source, "a.py").needs
    assert needs.modules == ("PIL.Image", "torch.nn", "google.protobuf")
    assert needs.packages == ("torch", "tomli", "pillow", "protobuf")
    assert needs.requirements[-1] == Requirement("python>=3.9")


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("sklearn.metrics", "scikit-learn"),
        ("yaml", "pyyaml"),
        ("PIL", "pillow"),
        ("google.protobuf.message", "protobuf"),
        ("torchmetrics", "torchmetrics"),
    ],
)
def test_packages_of_modules(module: str, package: str) -> None:
    assert package_of(module) == package
