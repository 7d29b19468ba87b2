"""Losses: most elementwise ones use TensorIterator; those over classes have a generated check."""

from __future__ import annotations

from .line import COMPOSITE, GENERATED, ITERATOR, Line, codegen, iterator, on

CTC = "aten/src/ATen/native/LossCTC.cpp ctc_loss: CPU targets are copied; cuDNN's algorithm needs them on the CPU"

LINES = [
    Line("mse_loss", "F.mse_loss(x, cx)", iterator(), ITERATOR),
    Line("l1_loss", "F.l1_loss(x, cx)", iterator(), COMPOSITE),
    Line("smooth_l1_loss", "F.smooth_l1_loss(x, cx)", iterator(), ITERATOR),
    Line("huber_loss", "F.huber_loss(x, cx)", codegen("D:0", "cpu", "target", "huber_loss"), GENERATED),
    Line("kl_div", "F.kl_div(x, cx, reduction='sum')", iterator(), COMPOSITE),
    Line("bce", "F.binary_cross_entropy(x, cx)", iterator(), ITERATOR),
    Line("bce_logits", "F.binary_cross_entropy_with_logits(x, cx)", iterator(), COMPOSITE),
    Line("bce_pos_weight", "F.binary_cross_entropy_with_logits(x, x, pos_weight=cx)", iterator(), COMPOSITE),
    Line("nll_loss", "F.nll_loss(m, ct)", codegen("D:0", "cpu", "target", "nll_loss_forward"), GENERATED),
    Line("cross_entropy_target", "F.cross_entropy(m, ct)",
         codegen("D:0", "cpu", "target", "nll_loss_forward"), GENERATED),
    Line("cross_entropy_target_on_other_device", "F.cross_entropy(m, t1)",
         codegen("D:0", "D:1", "target", "nll_loss_forward"), GENERATED),
    Line("cross_entropy_weight", "F.cross_entropy(m, t, cx)",
         codegen("D:0", "cpu", "weight", "nll_loss_forward"), GENERATED),
    Line("mse_loss_other_device", "F.mse_loss(x, x1)", iterator("D:1"), ITERATOR),
    Line("bce_weight", "F.binary_cross_entropy(x, x, weight=cx)", iterator(), ITERATOR),
    Line("poisson_nll", "F.poisson_nll_loss(x, cx)", iterator(), COMPOSITE),
    Line("gaussian_nll", "F.gaussian_nll_loss(x, cx, x)", iterator(), COMPOSITE),
    Line("soft_margin", "F.soft_margin_loss(x, cx)", iterator(), COMPOSITE),
    Line("hinge_embedding", "F.hinge_embedding_loss(x, cx)", iterator(), COMPOSITE),
    Line("margin_ranking", "F.margin_ranking_loss(x, cx, x)", iterator(), COMPOSITE),
    Line("triplet_margin", "F.triplet_margin_loss(m, cm, m)", iterator(), COMPOSITE),
    Line("cosine_embedding", "F.cosine_embedding_loss(m, cm, x)", iterator(), COMPOSITE),
    Line("multilabel_soft_margin", "F.multilabel_soft_margin_loss(m, cm)", iterator(), COMPOSITE),
    Line("pairwise_distance", "F.pairwise_distance(m, cm)", iterator(), COMPOSITE),
    Line("multi_margin", "F.multi_margin_loss(m, ct)",
         codegen("D:0", "cpu", "target", "multi_margin_loss"), GENERATED),
    Line("multilabel_margin", "F.multilabel_margin_loss(m, cm.long())",
         codegen("D:0", "cpu", "target", "multilabel_margin_loss_forward"), GENERATED),
    Line("ctc_targets_on_cpu",
         "F.ctc_loss(torch.zeros(4, 1, 3, device=d), torch.ones(1, 2, dtype=torch.long), torch.tensor([4]), "
         "torch.tensor([2]))", on("D:0"), CTC),
]  # fmt: skip
