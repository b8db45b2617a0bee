"""Frames: images of a run in shared memory, with metrics and metadata, for viewers.

`FastLaneWriter` publishes frames and never waits; `FastLaneReader` reads the newest frame. `publish_frames` publishes
the images of any Gymnasium environment. MOSAIC's programs read and write the same segments (docs/protocol.md,
"Frames").
"""

from tandem.engine.worker_environment import WorkerSettings, apply_fastlane_environment
from tandem.fastlane.frames import FastLaneConfig, FastLaneFrame, FastLaneMetrics
from tandem.fastlane.publishing import PublishFrames, PublishVectorFrames, publish_frames
from tandem.fastlane.reader import FastLaneReader, NoSuchRun
from tandem.fastlane.tiling import tile_frames
from tandem.fastlane.writer import FastLaneWriter

__all__ = [
    "FastLaneConfig",
    "FastLaneFrame",
    "FastLaneMetrics",
    "FastLaneReader",
    "FastLaneWriter",
    "NoSuchRun",
    "PublishFrames",
    "PublishVectorFrames",
    "WorkerSettings",
    "apply_fastlane_environment",
    "publish_frames",
    "tile_frames",
]
