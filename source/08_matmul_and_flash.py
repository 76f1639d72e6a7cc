# ---
# jupyter:
#   course:
#     title: "8. The two kernels that matter"
#     minutes: 150
#     hardware: "no GPU; with one, kernels are compiled and timed; Triton is for Linux"
#     needs: "chapters 4, 6 and 7"
#     leaves_with: "a tiled matmul and a FlashAttention of your own, graded on the bytes they move"
# ---

# %% [markdown] key="title"
# # 8. The two kernels that matter
#
# To be written.

# %% key="setup" tags=["setup"]
import dataclasses
import math

import torch
import torch.nn.functional as F

from utils import lab, show
from utils.course import against_prediction, check, hint, mine, predict, quiz
from utils.course import progress, reveal, start
from utils.hardware import accelerator, median_time, time_samples
from utils.meter import measure, meter
from utils.meter.on_paper import launches, tl, triton, with_tail
from utils.show import Choice, Point, Roof, Series, Slider

torch.manual_seed(0)
machine = start("08")
device = "cuda" if machine.device == "cuda" else "cpu"

# %% key="recall"
quiz("08.recall")

# %% [markdown] key="flash-intro"
# ## FlashAttention

# %% [markdown] key="at-scale"
# ## At scale
#
# To be written.
#
# ## What to remember
#
# - To be written.
#
# ## Sources
#
# - To be written.
