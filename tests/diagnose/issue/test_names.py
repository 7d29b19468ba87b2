"""The names of a reporter's script in the checks."""

from __future__ import annotations

from repros.diagnose.issue.names import fit_names, own_names

SCRIPT = """\
net, tok = FastLanguageModel.from_pretrained("m")
opt = torch.optim.AdamW(net.parameters())
batches = DataLoader(data, batch_size=2)
"""


def test_a_check_has_the_names_of_the_script() -> None:
    check = "print(model.config, next(iter(loader)), optimizer.param_groups[0]['lr'], batch['model'])"
    assert (
        fit_names(check, SCRIPT) == "print(net.config, next(iter(batches)), opt.param_groups[0]['lr'], batch['model'])"
    )


def test_the_usual_names_and_other_programs_leave_a_check_as_it_is() -> None:
    check = "print(model.module, self.model.config)"
    assert fit_names(check, "") == check
    assert fit_names(check, 'model = AutoModel.from_pretrained("m")\nother = AutoModel.from_pretrained("n")\n') == check
    assert own_names("x = 1\n") == {}
