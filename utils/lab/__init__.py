"""The GPT that the course trains: its model, its text, its trainer."""

from utils.lab.checkpoint import load_checkpoint, save_checkpoint
from utils.lab.configs import CONFIGS, configuration
from utils.lab.data import Split, Text, get_batch, is_held_out, stdlib_text, text_from_files
from utils.lab.evaluate import autocast, evaluate, generate
from utils.lab.gpt import GPT, next_token_loss, scaled_dot_product_attention
from utils.lab.history import History, Row, print_line
from utils.lab.optimizer import learning_rate, make_optimizer
from utils.lab.recipe import Recipe
from utils.lab.train import train
from utils.lab.trainer import Trainer

__all__ = [
    "CONFIGS",
    "GPT",
    "History",
    "Recipe",
    "Row",
    "Split",
    "Text",
    "Trainer",
    "autocast",
    "configuration",
    "evaluate",
    "generate",
    "get_batch",
    "is_held_out",
    "learning_rate",
    "load_checkpoint",
    "make_optimizer",
    "next_token_loss",
    "print_line",
    "save_checkpoint",
    "scaled_dot_product_attention",
    "stdlib_text",
    "text_from_files",
    "train",
]
