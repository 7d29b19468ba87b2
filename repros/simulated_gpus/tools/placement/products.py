"""Matrix products, linear algebra, Fourier transforms: the generated check names the argument."""

from __future__ import annotations

from dataclasses import replace

from .line import COMPOSITE, Expectation, Line, codegen, device_error, error, product

SPECTRAL = "aten/src/ATen/native/SpectralOps.cpp: composite, with the rule of _fft_r2c inside it"
MV = "aten/src/ATen/native/Blas.cpp mv: addmv_ on a result made where the vector is"


def fft_out(name: str) -> Expectation:
    """Expect the error of the transform's generated check; torch 2.15, but not 2.13, raises one before that call."""
    check = codegen("cpu", "D:0", "self", "_fft_r2c")
    return replace(check, since=f"{check.since}|RuntimeError: {name} expects out tensor on device D:0 but got cpu")


LINES = [
    product("mm", "torch.mm(m, cm)", "mat2", "mm"),
    product("mm_reversed", "torch.mm(cm, m)", "mat2", "mm", "cpu", "D:0"),
    product("mm_other_device", "torch.mm(m, m1)", "mat2", "mm", "D:0", "D:1"),
    product("mm_before_shapes", "torch.mm(m, torch.ones(5, 7))", "mat2", "mm"),
    product("mm_out", "torch.mm(m, m, out=torch.empty(3, 3))", "self", "mm", "cpu", "D:0"),
    product("mm_out_other_device", "torch.mm(m, m, out=torch.empty(3, 3, device=e))", "self", "mm", "D:1", "D:0"),
    product("matrix_times_matrix", "m @ cm", "mat2", "mm"),
    Line("mv", "torch.mv(m, cx)", codegen("cpu", "D:0", "mat", "addmv_"), MV),
    Line("matmul", "m @ cx", codegen("cpu", "D:0", "mat", "addmv_"), MV),
    product("dot", "torch.dot(x, cx)", "tensor", "dot"),
    product("dot_other_device", "torch.dot(x, x1)", "tensor", "dot", "D:0", "D:1"),
    product("bmm", "torch.bmm(b, cb)", "mat2", "bmm"),
    product("baddbmm", "torch.baddbmm(b, b, cb)", "batch2", "baddbmm"),
    product("addmm_bias", "torch.addmm(cx, m, m)", "mat1", "addmm", "cpu", "D:0"),
    product("addmm_bias_scalar", "torch.addmm(cs, m, m)", "mat1", "addmm", "cpu", "D:0"),
    product("addmm_mat1", "torch.addmm(x, cm, m)", "mat1", "addmm"),
    product("addmm_mat2", "torch.addmm(x, m, cm)", "mat2", "addmm"),
    product("addmv", "torch.addmv(x, m, cx)", "vec", "addmv"),
    product("addr", "torch.addr(m, x, cx)", "vec2", "addr"),
    product("addbmm", "torch.addbmm(m, b, cb)", "batch2", "addbmm"),
    Line("outer", "torch.outer(x, cx)", device_error(), COMPOSITE),
    Line("einsum", "torch.einsum('ij,jk->ik', m, cm)", codegen("D:0", "cpu", "mat2", "bmm"), COMPOSITE),
    Line("kron", "torch.kron(m, cm)", device_error(), COMPOSITE),
    product("cross", "torch.linalg.cross(x, cx)", "other", "linalg_cross"),
    product("cdist", "torch.cdist(m, cm)", "x2", "_cdist_forward"),
    product("solve", "torch.linalg.solve(m, cm)", "B", "_linalg_solve_ex"),
    Line("cholesky_solve", "torch.cholesky_solve(m, cm)",
         error("Expected b and A to be on the same device, but found b on D:0 and A on cpu instead."),
         "aten/src/ATen/native/LinearAlgebraUtils.h linearSolveCheckInputs"),
    product("addmm_out", "torch.addmm(x, m, m, out=torch.empty(3, 3))", "self", "addmm", "cpu", "D:0"),
    product("addmm_inplace", "m.addmm_(m, cm)", "mat2", "addmm_"),
    product("vdot", "torch.vdot(x, cx)", "other", "vdot"),
    product("vecdot", "torch.linalg.vecdot(x, cx)", "other", "vdot"),
    product("tensordot", "torch.tensordot(m, cm, 1)", "mat2", "mm"),
    Line("inner", "torch.inner(x, cx)",
         error("Expected tensor to have D DeviceType, but got tensor with cpu DeviceType (while checking arguments for "
              "inner())"), COMPOSITE),
    Line("multi_dot", "torch.linalg.multi_dot([m, cm])",
         error("multi_dot(): all tensors must be on the same device but tensor 0 is on D:0 and tensor 1 on cpu"),
         COMPOSITE),
    product("lstsq", "torch.linalg.lstsq(m, cm)", "b", "linalg_lstsq"),
    product("solve_triangular", "torch.linalg.solve_triangular(m, cm, upper=True)", "B", "linalg_solve_triangular"),
    product("lu_solve", "torch.linalg.lu_solve(m, t.int(), cm)", "B", "linalg_lu_solve"),
    product("householder", "torch.linalg.householder_product(m, cx)", "tau", "linalg_householder_product"),
    product("ormqr", "torch.ormqr(m, x, cm)", "input3", "ormqr"),
    product("eigh_out", "torch.linalg.eigh(m, out=(torch.empty(3), torch.empty(3, 3)))",
            "A", "_linalg_eigh", "cpu", "D:0"),
    product("svd_out", "torch.linalg.svd(m, out=(torch.empty(3, 3), torch.empty(3), torch.empty(3, 3)))",
            "A", "_linalg_svd", "cpu", "D:0"),
    product("qr_out", "torch.linalg.qr(m, out=(torch.empty(3, 3), torch.empty(3, 3)))", "A", "linalg_qr", "cpu", "D:0"),
    Line("inverse_out", "torch.linalg.inv(m, out=torch.empty(3, 3))", device_error(), COMPOSITE),
    Line("cholesky_out", "torch.linalg.cholesky(m, out=torch.empty(3, 3))", device_error(), COMPOSITE),
    Line("fft_out", "torch.fft.fft(x, out=torch.empty(3, dtype=torch.complex64))", fft_out("fft"), SPECTRAL),
    Line("rfft_out", "torch.fft.rfft(x, out=torch.empty(2, dtype=torch.complex64))", fft_out("rfft"), SPECTRAL),
    Line("stft_window", "torch.stft(torch.ones(8, device=d), 4, window=torch.ones(4), return_complex=True)",
         error("stft input and window must be on the same device but got self on D:0 and window on cpu"), COMPOSITE),
]  # fmt: skip
