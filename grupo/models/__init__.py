"""What is trained: things that act and can say how likely their actions were."""
