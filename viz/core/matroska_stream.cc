#include "viz/core/matroska_stream.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tandem::matroska_stream {
namespace {

// Identifiers of elements, as their bytes.
constexpr absl::string_view kEbml = "\x1A\x45\xDF\xA3";
constexpr absl::string_view kDocType = "\x42\x82";
constexpr absl::string_view kDocTypeVersion = "\x42\x87";
constexpr absl::string_view kDocTypeReadVersion = "\x42\x85";
constexpr absl::string_view kSegment = "\x18\x53\x80\x67";
constexpr absl::string_view kInfo = "\x15\x49\xA9\x66";
constexpr absl::string_view kTimestampScale = "\x2A\xD7\xB1";
constexpr absl::string_view kMuxingApp = "\x4D\x80";
constexpr absl::string_view kWritingApp = "\x57\x41";
constexpr absl::string_view kTracks = "\x16\x54\xAE\x6B";
constexpr absl::string_view kTrackEntry = "\xAE";
constexpr absl::string_view kTrackNumber = "\xD7";
constexpr absl::string_view kTrackUid = "\x73\xC5";
constexpr absl::string_view kTrackType = "\x83";
constexpr absl::string_view kFlagLacing = "\x9C";
constexpr absl::string_view kCodecId = "\x86";
constexpr absl::string_view kVideo = "\xE0";
constexpr absl::string_view kPixelWidth = "\xB0";
constexpr absl::string_view kPixelHeight = "\xBA";
constexpr absl::string_view kUncompressedFourCc = "\x2E\xB5\x24";
constexpr absl::string_view kCluster = "\x1F\x43\xB6\x75";
constexpr absl::string_view kTimestamp = "\xE7";
constexpr absl::string_view kSimpleBlock = "\xA3";

// A segment that ends with the stream.
constexpr absl::string_view kUnknownSize = "\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
// Of a block: track 1; time 0 after the cluster's; a key frame.
constexpr absl::string_view kBlockHead("\x81\x00\x00\x80", 4);
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kVideoTrack = 1;

std::string BigEndian(uint64_t number) {
  std::string bytes(sizeof(number), '\0');
  for (auto at = bytes.rbegin(); at != bytes.rend(); ++at) {
    *at = static_cast<char>(number & 0xFF);
    number >>= 8;
  }
  return bytes;
}

// A size in its longest form: a byte 1, then seven bytes.
std::string SizeOf(size_t bytes) {
  return BigEndian(uint64_t{bytes} | (uint64_t{1} << 56));
}

std::string Element(absl::string_view id, absl::string_view content) {
  return absl::StrCat(id, SizeOf(content.size()), content);
}

std::string Element(absl::string_view id, uint64_t number) {
  return Element(id, BigEndian(number));
}

}  // namespace

std::string StreamHead(uint32_t width, uint32_t height, uint32_t channels) {
  const absl::string_view four_cc = channels == 4 ? "RGBA" : "RGB\x18";
  const std::string video =
      absl::StrCat(Element(kPixelWidth, uint64_t{width}),
                   Element(kPixelHeight, uint64_t{height}),
                   Element(kUncompressedFourCc, four_cc));
  const std::string track = absl::StrCat(
      Element(kTrackNumber, 1), Element(kTrackUid, 1),
      Element(kTrackType, kVideoTrack), Element(kFlagLacing, uint64_t{0}),
      Element(kCodecId, "V_UNCOMPRESSED"), Element(kVideo, video));
  return absl::StrCat(
      Element(kEbml, absl::StrCat(Element(kDocType, "matroska"),
                                  Element(kDocTypeVersion, 4),
                                  Element(kDocTypeReadVersion, 2))),
      kSegment, kUnknownSize,
      Element(kInfo, absl::StrCat(Element(kTimestampScale, kNsPerMs),
                                  Element(kMuxingApp, "Tandem"),
                                  Element(kWritingApp, "Tandem"))),
      Element(kTracks, Element(kTrackEntry, track)));
}

std::string FrameHead(uint64_t time_ms, size_t pixel_bytes) {
  // A cluster for each frame: the time of a block within a cluster has only 16
  // bits.
  const std::string time = Element(kTimestamp, time_ms);
  const std::string block = absl::StrCat(
      kSimpleBlock, SizeOf(kBlockHead.size() + pixel_bytes), kBlockHead);
  return absl::StrCat(
      kCluster, SizeOf(time.size() + block.size() + pixel_bytes), time, block);
}

}  // namespace tandem::matroska_stream
