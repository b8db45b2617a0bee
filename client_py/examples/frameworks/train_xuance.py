"""Trains by XuanCe's PPO.

tools/torch_python client_py/examples/frameworks/train_xuance.py --help
"""

import argparse

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--task", default="CartPole-v1")
parser.add_argument("--backend", choices=("native", "python"), help="of tandem.make_vec")
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--num_envs", type=int, default=16)
parser.add_argument("--seed", type=int, default=0)
asked = parser.parse_args()
