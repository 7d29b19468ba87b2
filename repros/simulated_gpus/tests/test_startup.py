"""A process started by the engine has the devices once torch is imported, and loads nothing earlier."""

from __future__ import annotations

from typing import Any


def test_nothing_is_loaded_before_torch_is(run_script: Any) -> None:
    script = """
        import sys
        print(sorted(name for name in sys.modules if name == "torch" or "simulated" in name or "lightning" in name))
    """
    ended = run_script(script)
    loaded = ["", ".errors", ".import_hooks", ".startup"]
    assert ended.stdout.strip() == str([f"repros.simulated_gpus{name}" for name in loaded]), ended.stderr


def test_importing_torch_loads_it_in_a_forked_and_a_spawned_process_too(sim: Any, run_script: Any) -> None:
    script = """
        import multiprocessing, torch
        def work(results):
            tensor = torch.ones(3, device="cuda:1", requires_grad=True)
            tensor.pow(2).sum().backward()
            results.put(tensor.grad.tolist())
        if __name__ == "__main__":
            for method in ("fork", "spawn"):
                context = multiprocessing.get_context(method)
                results = context.SimpleQueue()
                process = context.Process(target=work, args=(results,))
                process.start()
                print(method, results.get())
                process.join()
            print(torch.zeros(1, device="cuda:1").device)
    """
    ended = run_script(script)
    assert ended.stdout.splitlines() == ["fork [2.0, 2.0, 2.0]", "spawn [2.0, 2.0, 2.0]", "cuda:1"], ended.stderr
