#include "viz/core/image_view.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TiledImage Image(uint32_t width, uint32_t height, uint32_t tiles) {
  return {.width = width,
          .height = height,
          .tiles = tiles,
          .grid = ImageGrid::Of(tiles)};
}

ImageView View(double area_width, double area_height, uint32_t width,
               uint32_t height, uint32_t tiles = 1) {
  ImageView view;
  view.SetArea(area_width, area_height);
  view.SetImage(Image(width, height, tiles));
  return view;
}

TEST(ImageView, FitsWithTheAspectRatioKept) {
  EXPECT_EQ(View(800, 600, 100, 100).Target(), (ViewRect{100, 0, 600, 600}));
  EXPECT_EQ(View(600, 800, 100, 50).Target(), (ViewRect{0, 250, 600, 300}));
}

TEST(ImageView, DrawsNothingWithoutAnImageOrAnArea) {
  EXPECT_EQ(View(800, 600, 0, 0).Target().width, 0);
  EXPECT_EQ(ImageView().Target().width, 0);
}

TEST(ImageView, StaysFittedWhenTheWindowGrows) {
  ImageView view = View(100, 100, 50, 50);
  view.SetArea(200, 200);
  EXPECT_EQ(view.Target(), (ViewRect{0, 0, 200, 200}));
}

TEST(ImageView, ShowsOneTileInFocus) {
  ImageView view = View(400, 400, 200, 100, 4);
  view.Focus(3);
  EXPECT_EQ(view.Source(), (ViewRect{100, 50, 100, 50}));
  EXPECT_EQ(view.Target(), (ViewRect{0, 100, 400, 200}));
  EXPECT_EQ(view.TileUnder(200, 200), 3);
  view.Focus(ImageView::kGrid);
  EXPECT_EQ(view.Source(), (ViewRect{0, 0, 200, 100}));
  EXPECT_EQ(view.TileUnder(399, 101), 1);
  EXPECT_EQ(view.TileUnder(200, 99), -1);  // Beside the image.
}

TEST(ImageView, RefusesToFocusMissingTile) {
  ImageView view = View(400, 400, 200, 100, 4);
  view.Focus(4);
  EXPECT_EQ(view.focus(), ImageView::kGrid);
  ImageView single = View(400, 400, 200, 100);
  single.Focus(0);
  EXPECT_EQ(single.focus(), ImageView::kGrid);
}

TEST(ImageView, LeavesTheFocusWhenItsTileIsGone) {
  ImageView view = View(400, 400, 200, 100, 4);
  view.Focus(3);
  view.SetImage(Image(200, 100, 4));
  EXPECT_EQ(view.focus(), 3);
  view.SetImage(Image(200, 100, 2));
  EXPECT_EQ(view.focus(), ImageView::kGrid);
}

TEST(TileRect, LaysTilesAsTileFramesDoes) {
  // 5 tiles: 3 rows of 2.
  EXPECT_EQ(TileRect(Image(20, 30, 5), 4), (ViewRect{0, 20, 10, 10}));
  EXPECT_EQ(TileAt(Image(20, 30, 5), 5, 25), 4);
  EXPECT_EQ(TileAt(Image(20, 30, 5), 15, 25), -1);  // The black tile.
  EXPECT_EQ(TileAt(Image(20, 30, 5), 20, 0), -1);
}

TEST(TileRect, LaysTilesAsTheWritersGridSays) {
  const TiledImage row = {
      .width = 20, .height = 30, .tiles = 2, .grid = {.rows = 1, .columns = 2}};
  EXPECT_EQ(TileRect(row, 1), (ViewRect{10, 0, 10, 30}));
  EXPECT_EQ(TileAt(row, 15, 25), 1);
}

TEST(TileRect, TreatsAnUnevenImageAsOneTile) {
  EXPECT_EQ(TileRect(Image(21, 30, 5), 4), (ViewRect{0, 0, 21, 30}));
  EXPECT_EQ(TileRect(Image(20, 30, 0), 0), (ViewRect{0, 0, 20, 30}));
  EXPECT_EQ(TileRect(Image(20, 30, 4'000'000'000u), 7),
            (ViewRect{0, 0, 20, 30}));
}

}  // namespace
}  // namespace tandem
