"""One training loop for all methods: batches, schedule, validation, checkpoints, resume."""

from engine.training.options import BUDGETS, TrainingOptions, budget_options
