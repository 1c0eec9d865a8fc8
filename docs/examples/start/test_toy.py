"""The network of paper `toy` scores nodes whatever their order."""

import torch
from toy import Net


def test_logits_follow_the_order_of_the_nodes() -> None:
    torch.manual_seed(0)
    net = Net(train_nodes=8).eval()
    rows, order = net.encode(torch.rand(1, 8, 2)), torch.randperm(6)
    reordered = torch.cat([rows[:, :1], rows[:, 1:-1][:, order], rows[:, -1:]], dim=1)
    torch.testing.assert_close(net.decide(reordered), net.decide(rows)[:, order])
