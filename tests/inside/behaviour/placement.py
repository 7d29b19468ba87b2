"""What a device does when tensors and generators of different devices meet; run as `python placement.py DEVICE`.

Prints one JSON object: torch's version, the device's name, and for every case either what came out (`device dtype`) or the
error (`Type: message`). Run on a real GPU it is evidence; run on `sim` it is held against that evidence. Plain torch, so that it
runs wherever torch does.
"""

import json
import sys
import tempfile

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody uses

CASES = {}


def case(function):
    """Register a case; it takes the device under test and `cpu`."""
    CASES[function.__name__] = function
    return function


def expressions(**sources):
    """Register cases that are one expression each, over `d` (device), `x`, `m` (device tensors), `cx`, `cm` (CPU ones)."""
    for name, source in sources.items():
        CASES[name] = _expression(source)


def _expression(source):
    code = compile(source, source, "eval")

    def run(d, c):
        names = {
            "torch": torch, "F": F, "d": d, "c": c, "nn": torch.nn,
            "x": torch.ones(3, device=d), "m": torch.eye(3, device=d), "b": torch.ones(2, 3, 3, device=d),
            "cx": torch.ones(3), "cm": torch.eye(3), "cb": torch.ones(2, 3, 3),
            "s": torch.tensor(2.0, device=d), "cs": torch.tensor(2.0),
            "i": torch.tensor([0, 2], device=d), "ci": torch.tensor([0, 2]),
            "t": torch.tensor([0, 1, 2], device=d), "ct": torch.tensor([0, 1, 2]),
            "k": torch.tensor([True, False, True], device=d), "ck": torch.tensor([True, False, True]),
            "g": torch.Generator(device=d), "cg": torch.Generator(),
            "image": torch.ones(1, 2, 4, 4, device=d), "cimage": torch.ones(1, 2, 4, 4),
        }  # fmt: skip
        return eval(code, names)  # noqa: S307 - the expressions below

    return run


# Elementwise operators: TensorIterator decides, and lets a 0-dim CPU tensor in.
expressions(
    add="x + cx", add_reversed="cx + x", add_scalar="x + cs", add_scalar_reversed="cs + x", add_cpu_and_device_scalar="cx + s",
    add_inplace="x.add_(cx)", add_inplace_scalar="x.add_(cs)", cpu_add_inplace_device="cx.add_(x)",
    cpu_add_inplace_device_scalar="cx.add_(s)", add_out="torch.add(x, x, out=torch.empty(3))",
    add_out_wrong_inputs="torch.add(cx, cx, out=torch.empty(3, device=d))", add_scalars_only="s + cs", mul="x * cx", div="x / cs",
    compare="x == cx", maximum="torch.maximum(x, cx)", where_condition="torch.where(ck, x, x)", where_other="torch.where(k, x, cx)",
    where_scalar="torch.where(k, x, cs)", lerp="torch.lerp(x, cx, 0.5)", lerp_weight="torch.lerp(x, x, cs)",
    addcmul="torch.addcmul(x, cx, x)", addcdiv="torch.addcdiv(x, x, cx)", clamp_min="torch.clamp(x, min=cx)",
    clamp_min_scalar="torch.clamp(x, min=cs)", power="torch.pow(x, cx)", power_scalar="torch.pow(x, cs)",
    masked_fill_mask="x.masked_fill(ck, 0.0)", masked_fill_value="x.masked_fill(k, cs)", masked_fill_value_1d="x.masked_fill(k, cx)",
    fill_scalar="x.fill_(cs)", copy_from_cpu="x.copy_(cx)", copy_to_cpu="cx.copy_(x)", sigmoid_out="torch.sigmoid(x, out=torch.empty(3))",
)  # fmt: skip
# Matrix products, convolutions and layers: the generated wrappers check every tensor argument.
expressions(
    mm="torch.mm(m, cm)", mm_reversed="torch.mm(cm, m)", mm_out="torch.mm(m, m, out=torch.empty(3, 3))", matmul="m @ cx",
    mv="torch.mv(m, cx)", dot="torch.dot(x, cx)", bmm="torch.bmm(b, cb)", baddbmm="torch.baddbmm(b, b, cb)",
    addmm_bias="torch.addmm(cx, m, m)", addmm_mat1="torch.addmm(x, cm, m)", addmm_mat2="torch.addmm(x, m, cm)",
    addmv="torch.addmv(x, m, cx)", outer="torch.outer(x, cx)", einsum="torch.einsum('ij,jk->ik', m, cm)", linear_input="F.linear(cm, m, x)",
    linear_weight="F.linear(m, cm, x)", linear_bias="F.linear(m, m, cx)", linear_3d="F.linear(cb, m, x)", bilinear="F.bilinear(m, cm, b)",
    conv_input="F.conv2d(cimage, torch.ones(1, 2, 3, 3, device=d))", conv_weight="F.conv2d(image, torch.ones(1, 2, 3, 3))",
    conv_bias="F.conv2d(image, torch.ones(1, 2, 3, 3, device=d), torch.ones(1))", embedding_index="F.embedding(ct, m)",
    embedding_weight="F.embedding(t, cm)", embedding_bag="F.embedding_bag(ct, m, ci)", layer_norm="F.layer_norm(x, (3,), cx)",
    group_norm="F.group_norm(image, 2, torch.ones(2))", batch_norm="F.batch_norm(image, torch.ones(2), torch.ones(2))",
    batch_norm_weight="F.batch_norm(image, torch.ones(2, device=d), torch.ones(2, device=d), torch.ones(2))",
    prelu="F.prelu(x, torch.ones(1))", attention="F.scaled_dot_product_attention(b, cb, b)", lstm="nn.LSTM(3, 3)(b)", gru_cell="nn.GRUCell(3, 3)(m)",
    module_linear="nn.Linear(3, 3).to(d)(cm)", module_linear_on_cpu="nn.Linear(3, 3)(m)", module_embedding="nn.Embedding(3, 3).to(d)(ct)",
    grid_sample="F.grid_sample(image, torch.zeros(1, 2, 2, 2))", cdist="torch.cdist(m, cm)", solve="torch.linalg.solve(m, cm)",
    cholesky_solve="torch.cholesky_solve(m, cm)", kron="torch.kron(m, cm)", cross="torch.linalg.cross(x, cx)",
)  # fmt: skip
# Losses.
expressions(
    mse_loss="F.mse_loss(x, cx)", l1_loss="F.l1_loss(x, cx)", smooth_l1_loss="F.smooth_l1_loss(x, cx)",
    cross_entropy_target="F.cross_entropy(m, ct)", cross_entropy_weight="F.cross_entropy(m, t, cx)", nll_loss="F.nll_loss(m, ct)",
    bce="F.binary_cross_entropy(x, cx)", bce_logits="F.binary_cross_entropy_with_logits(x, cx)", bce_pos_weight="F.binary_cross_entropy_with_logits(x, x, pos_weight=cx)",
    kl_div="F.kl_div(x, cx)", cosine="F.cosine_similarity(x, cx, dim=0)",
)  # fmt: skip
# Indexing: a CPU index is welcome, a device index into a CPU tensor is not.
expressions(
    index_by_cpu="x[ci]", index_by_cpu_mask="x[ck]", cpu_index_by_device="cx[i]", cpu_index_by_device_mask="cx[k]",
    index_put_value="x.index_put_((i,), torch.ones(2))", index_put_scalar="x.index_put_((i,), cs)", index_put_cpu_index="x.index_put_((ci,), torch.ones(2, device=d))",
    cpu_index_put_device_value="cx.index_put_((ci,), torch.ones(2, device=d))", setitem="x.__setitem__(0, cs)", setitem_slice="x.__setitem__(slice(None), cx)",
    setitem_mask="x.__setitem__(ck, 0.0)", setitem_mask_value="x.__setitem__(k, torch.ones(2))", gather="x.gather(0, ci)", scatter_index="x.scatter(0, ci, 1.0)",
    scatter_source="x.scatter(0, i, torch.ones(2))", scatter_add="x.scatter_add(0, ci, torch.ones(2, device=d))", index_select="x.index_select(0, ci)",
    index_add="x.index_add(0, ci, torch.ones(2, device=d))", index_add_source="x.index_add(0, i, torch.ones(2))", index_copy="x.index_copy(0, ci, torch.ones(2, device=d))",
    index_fill="x.index_fill(0, ci, 1.0)", index_fill_value="x.index_fill(0, i, cs)", take="torch.take(x, ci)", masked_select="torch.masked_select(x, ck)",
    masked_scatter="x.masked_scatter(ck, x)", masked_scatter_source="x.masked_scatter(k, cx)", bucketize="torch.bucketize(x, cx)", searchsorted="torch.searchsorted(x, cx)",
    repeat_interleave="torch.repeat_interleave(x, ct)", isin="torch.isin(x, cx)",
)  # fmt: skip
# Lists of tensors.
expressions(
    cat="torch.cat([x, cx])", cat_reversed="torch.cat([cx, x])", stack="torch.stack([x, cx])", cat_out="torch.cat([x, x], out=torch.empty(6))",
    hstack="torch.hstack([x, cx])", block_diag="torch.block_diag(m, cm)", foreach_add_lists="torch._foreach_add([x, x], [cx, cx])",
    foreach_add_inplace="torch._foreach_add_([x, x], [cx, cx])", foreach_add_scalar_tensor="torch._foreach_add_([x, x], cs)",
    foreach_mixed_list="torch._foreach_mul_([x, cx], 2.0)", foreach_lerp="torch._foreach_lerp_([x], [cx], 0.5)", foreach_norm_mixed="torch._foreach_norm([x, cx])",
    meshgrid="torch.meshgrid(x, cx, indexing='ij')", cartesian="torch.cartesian_prod(x, cx)",
)  # fmt: skip
# Generators.
expressions(
    randperm_cpu_generator="torch.randperm(4, generator=cg, device=d)", randperm_device_generator="torch.randperm(4, generator=g)", randperm_right="torch.randperm(4, generator=g, device=d)",
    rand_cpu_generator="torch.rand(3, generator=cg, device=d)", rand_device_generator="torch.rand(3, generator=g)", randn_cpu_generator="torch.randn(3, generator=cg, device=d)",
    randint_cpu_generator="torch.randint(3, (3,), generator=cg, device=d)", normal_inplace="x.normal_(generator=cg)", uniform_inplace="x.uniform_(generator=cg)",
    bernoulli="torch.bernoulli(x, generator=cg)", bernoulli_inplace="x.bernoulli_(0.5, generator=cg)", multinomial="torch.multinomial(x, 2, generator=cg)", exponential="x.exponential_(generator=cg)",
    cpu_normal_device_generator="cx.normal_(generator=g)", cpu_multinomial_device_generator="torch.multinomial(cx, 2, generator=g)", normal_mean="torch.normal(x, x, generator=cg)",
    generator_device="str(torch.Generator(device=d).device)", generator_seed="torch.Generator(device=d).manual_seed(3).initial_seed()",
)  # fmt: skip
# What only the host can do, and moving about.
expressions(
    numpy="x.numpy()", item="s.item()", tolist="x.tolist()", pin_device_tensor="x.pin_memory()", tensor_of_device_scalars="torch.tensor([s, s])",
    tensor_of_device_scalars_on_device="torch.tensor([s, s], device=d)", as_tensor="torch.as_tensor(x)", from_dlpack_roundtrip="torch.ones(3).to(d).cpu()",
    full_with_device_scalar="torch.full((2,), s)", arange_with_device_scalar="torch.arange(s)", bool_of_tensor="bool(s)", index_python_list="[1, 2, 3][torch.tensor(1, device=d)]",
    set_data_other_device="x.__setattr__('data', cx)", to_cpu_and_back="x.cpu().to(d)", is_same_type="x.type()", deepcopy="__import__('copy').deepcopy(x)",
    equal="torch.equal(x, cx)", allclose="torch.allclose(x, cx)", type_as="cx.type_as(x)", new_tensor="x.new_tensor([1.0])", tensor_split_indices="torch.tensor_split(x, ci)",
    tensor_split_device_indices="torch.tensor_split(x, i)", sort_out="torch.sort(x, out=(torch.empty(3), torch.empty(3, dtype=torch.long)))", nonzero="k.nonzero()", unique="torch.unique(x)",
    cumsum_out="torch.cumsum(x, 0, out=torch.empty(3))", sum_out="torch.sum(m, 0, out=torch.empty(3))", topk="torch.topk(x, 2).values",
)  # fmt: skip


def _resumed_with(moved, optimizer, **options):
    """Return a case: two steps, and before the second one part of the state is on the CPU, as a bad resume leaves it."""

    def run(d, c):
        weight = torch.ones(3, device=d, requires_grad=True)
        made = optimizer([weight], lr=0.1, **options)
        weight.grad = torch.ones(3, device=d)
        made.step()
        made.state[weight][moved] = made.state[weight][moved].to(c)
        made.step()
        return weight

    return run


for _name in ("Adam", "AdamW"):
    for _kind in ("fused", "foreach", "for_loop"):
        _options = {"fused": {"fused": True}, "foreach": {"foreach": True}, "for_loop": {"foreach": False, "fused": False}}[_kind]
        CASES["%s_%s_step_on_cpu" % (_name.lower(), _kind)] = _resumed_with("step", getattr(torch.optim, _name), **_options)
        CASES["%s_%s_moment_on_cpu" % (_name.lower(), _kind)] = _resumed_with("exp_avg", getattr(torch.optim, _name), **_options)


@case
def sgd_momentum_on_cpu(d, c):
    weight = torch.ones(3, device=d, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    weight.grad = torch.ones(3, device=d)
    optimizer.step()
    optimizer.state[weight]["momentum_buffer"] = torch.ones(3, device=c)
    optimizer.step()
    return weight


@case
def optimizer_state_follows_its_parameter(d, c):
    made = torch.optim.AdamW([torch.ones(3, requires_grad=True)], lr=0.1)
    made.param_groups[0]["params"][0].grad = torch.ones(3)
    made.step()
    loaded = torch.optim.AdamW([torch.ones(3, device=d, requires_grad=True)], lr=0.1)
    loaded.load_state_dict(made.state_dict())
    return " ".join(sorted("%s=%s" % (k, v.device.type) for k, v in loaded.state[loaded.param_groups[0]["params"][0]].items()))


@case
def fused_optimizer_state_follows_its_parameter(d, c):
    weight = torch.ones(3, device=d, requires_grad=True)
    made = torch.optim.AdamW([weight], lr=0.1, fused=True)
    weight.grad = torch.ones(3, device=d)
    made.step()
    with tempfile.TemporaryFile() as file:
        torch.save(made.state_dict(), file)
        file.seek(0)
        stored = torch.load(file, map_location="cpu")
    made.load_state_dict(stored)
    return " ".join(sorted("%s=%s" % (k, v.device.type) for k, v in made.state[weight].items()))


@case
def parameters_keep_their_identity(d, c):
    module = torch.nn.Linear(2, 2)
    before = [id(p) for p in module.parameters()]
    module.to(d)
    return str(before == [id(p) for p in module.parameters()])


@case
def load_maps_to_the_device(d, c):
    with tempfile.TemporaryFile() as file:
        torch.save({"w": torch.ones(3, device=d)}, file)
        file.seek(0)
        here = torch.load(file)["w"]
        file.seek(0)
        there = torch.load(file, map_location="cpu")["w"]
        file.seek(0)
        back = torch.load(file, map_location=d + ":0")["w"]
    return "%s %s %s" % (here.device, there.device, back.device)


@case
def default_device_mode_reaches_randperm(d, c):
    with torch.device(d):
        return torch.randperm(4, generator=torch.Generator(device="cpu"))


@case
def default_device_mode_reaches_tensor(d, c):
    with torch.device(d):
        return torch.tensor([1.0])


@case
def random_sampler_under_default_device(d, c):
    with torch.device(d):
        return str(len(list(torch.utils.data.RandomSampler(range(3)))))


@case
def data_loader_shuffle_under_default_device(d, c):
    with torch.device(d):
        return str(len(list(torch.utils.data.DataLoader(torch.arange(4.0), shuffle=True))))


@case
def autocast_matmul(d, c):
    with torch.autocast(d, dtype=torch.bfloat16):
        return torch.eye(3, device=d) @ torch.eye(3, device=d)


@case
def backward_across_devices(d, c):
    x = torch.ones(3, requires_grad=True)
    (x.to(d) * 2).sum().backward()
    return x.grad


@case
def same_seed_same_stream(d, c):
    torch.manual_seed(7)
    first = torch.rand(4, device=d)
    torch.manual_seed(7)
    return str(torch.equal(first, torch.rand(4, device=d)))


@case
def seed_leaves_cpu_stream_alone(d, c):
    torch.manual_seed(7)
    torch.rand(4, device=d)
    after = torch.rand(4)
    torch.manual_seed(7)
    return str(torch.equal(after, torch.rand(4)))


@case
def clip_grad_norm_mixed(d, c):
    weights = [torch.ones(3, device=place, requires_grad=True) for place in (d, c)]
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    return torch.nn.utils.clip_grad_norm_(weights, 1.0)


@case
def set_grad_other_device(d, c):
    weight = torch.ones(3, device=d, requires_grad=True)
    weight.grad = torch.ones(3)
    return weight.grad


def observe(function, device):
    """Return what a case gave, as text."""
    try:
        given = function(device, "cpu")
    except Exception as error:  # noqa: BLE001 - the error is the observation
        return "%s: %s" % (type(error).__name__, str(error).splitlines()[0] if str(error) else "")
    if isinstance(given, (tuple, list)):
        return " ".join(map(_text, given))
    return _text(given)


def _text(value):
    if isinstance(value, torch.Tensor):
        return "%s %s" % (value.device.type, str(value.dtype).replace("torch.", ""))
    return str(value)


def main(device):
    observed = {name: observe(function, device) for name, function in sorted(CASES.items())}
    print(json.dumps({"torch": torch.__version__, "device": device, "observed": observed}, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
