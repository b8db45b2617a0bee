#include "viz/web/page_files.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace tandem {
namespace {

TEST(PageFiles, TheRootIsThePage) {
  const PageFile* const page = FindPageFile("/");
  ASSERT_NE(page, nullptr);
  EXPECT_EQ(page->type, "text/html; charset=utf-8");
  EXPECT_TRUE(absl::StartsWith(page->content, "<!doctype html>"));
  EXPECT_TRUE(absl::EndsWith(page->content, "</html>\n"));
}

TEST(PageFiles, FilesHaveTheTypesThatBrowsersAskFor) {
  ASSERT_NE(FindPageFile("/app.js"), nullptr);
  EXPECT_EQ(FindPageFile("/app.js")->type, "text/javascript; charset=utf-8");
  ASSERT_NE(FindPageFile("/style.css"), nullptr);
  EXPECT_EQ(FindPageFile("/style.css")->type, "text/css; charset=utf-8");
}

TEST(PageFiles, EachModuleThatAModuleImportsExists) {
  // Begins with index.html's script.
  for (const char* const path :
       {"/app.js", "/connection.js", "/daemon.js", "/panel.js", "/plot.js",
        "/replay.js", "/run_list.js", "/scene.js", "/scene_link.js",
        "/scene_panel.js", "/tile.js"}) {
    const PageFile* const file = FindPageFile(path);
    ASSERT_NE(file, nullptr) << path;
    absl::string_view rest = file->content;
    for (;;) {
      const size_t at = rest.find("from \"./");
      if (at == absl::string_view::npos) break;
      rest.remove_prefix(at + std::string("from \".").size());
      const std::string imported(rest.substr(0, rest.find('"')));
      EXPECT_NE(FindPageFile(imported), nullptr) << path << " " << imported;
    }
  }
}

TEST(PageFiles, ThreeIsCompressedAndTheScriptsAreNot) {
  const PageFile* const three = FindPageFile("/three.js");
  ASSERT_NE(three, nullptr);
  EXPECT_TRUE(three->is_gzip);
  EXPECT_EQ(three->type, "text/javascript; charset=utf-8");
  EXPECT_LT(three->content.size(), 300'000);
  EXPECT_FALSE(FindPageFile("/app.js")->is_gzip);
}

TEST(PageFiles, NoOtherPathIsAFile) {
  for (const char* const path :
       {"", "app.js", "/index.html", "/../web_server.cc", "/./app.js",
        "//app.js", "/app.js/", "/%61pp.js", "/etc/passwd", "/APP.JS"}) {
    EXPECT_EQ(FindPageFile(path), nullptr) << path;
  }
}

}  // namespace
}  // namespace tandem
