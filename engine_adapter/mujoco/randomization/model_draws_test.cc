#include "engine_adapter/mujoco/randomization/model_draws.h"

#include <gtest/gtest.h>
#include <mujoco/mjxmacro.h>
#include <mujoco/mujoco.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/core/env_random.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/model/pose.h"
#include "engine_adapter/mujoco/randomization/contract.h"
#include "engine_adapter/mujoco/randomization/model_parts.h"

namespace tandem {
namespace {

constexpr char kFolder[] = "./engine_adapter/mujoco/randomization/testdata/";

struct SpecDeleter {
  void operator()(mjSpec* spec) const { mj_deleteSpec(spec); }
};
using SpecPtr = std::unique_ptr<mjSpec, SpecDeleter>;

std::vector<std::string> Files() {
  const std::string folder = kFolder;
  return {"half_cheetah.xml",       "ant.xml",
          "humanoid.xml",           "hopper.xml",
          folder + "turntable.xml", folder + "servo_arm.xml"};
}

// A contract with every draw that a model file can express.
Contract DrawnContract() {
  Contract contract;
  contract.friction = {0.2, 0.6};
  contract.restitution = {0.1, 0.9};
  contract.mass_scale = {1.5, 2};
  contract.com_offset = {-0.02, 0.02};
  contract.motor_strength = {0.7, 1.3};
  contract.motor_offset = {-0.1, 0.1};
  return contract;
}

// A file's model, an environment's copy of it, and the parsed file.
struct Drawing {
  explicit Drawing(const std::string& file)
      : path(FindModelFile(file, "").value().path),
        spec(mj_parseXML(path.c_str(), nullptr, nullptr, 0)),
        original(mj_compile(spec.get(), nullptr)),
        model(CopyModel(*original).value()),
        data(MakeData(*original).value()),
        parts(FindModelParts(*original)) {}

  void Draw(const Contract& contract) {
    RestoreModel(*original, model.get());
    DrawModel(contract, parts, random, model.get(), data.get());
    mj_resetData(model.get(), data.get());
    mj_forward(model.get(), data.get());
  }

  std::string path;
  SpecPtr spec;
  ModelPtr original;
  ModelPtr model;
  DataPtr data;
  ModelParts parts;
  EnvRandom random = EnvRandom(3);
};

// Copies object `id`'s numbers from the model's array, `size` for each object.
template <typename Number>
void Take(const mjtNum* array, int size, int id, Number* numbers) {
  std::copy_n(array + mjtSize{size} * id, size, numbers);
}

template <typename Change>
void ForEach(const SpecPtr& spec, mjtObj type, const Change& change) {
  for (mjsElement* each = mjs_firstElement(spec.get(), type); each != nullptr;
       each = mjs_nextElement(spec.get(), each)) {
    change(each, mjs_getId(each));
  }
}

// Returns MuJoCo's compilation of the file with the drawn model's numbers;
// masses and inertias are the given ones, even if the file would derive them.
ModelPtr Recompiled(const Drawing& drawing) {
  const SpecPtr& spec = drawing.spec;
  const mjModel& drawn = *drawing.model;
  spec->compiler.settotalmass = -1;
  spec->compiler.inertiafromgeom = mjINERTIAFROMGEOM_FALSE;
  ForEach(spec, mjOBJ_BODY, [&](mjsElement* each, int id) {
    if (id == 0) return;
    mjsBody* const body = mjs_asBody(each);
    body->explicitinertial = true;
    body->mass = drawn.body_mass[id];
    Take(drawn.body_ipos, 3, id, body->ipos);
    Take(drawn.body_iquat, 4, id, body->iquat);
    Take(drawn.body_inertia, 3, id, body->inertia);
  });
  ForEach(spec, mjOBJ_GEOM, [&](mjsElement* each, int id) {
    mjsGeom* const geom = mjs_asGeom(each);
    Take(drawn.geom_friction, 3, id, geom->friction);
    Take(drawn.geom_solref, mjNREF, id, geom->solref);
  });
  ForEach(spec, mjOBJ_JOINT, [&](mjsElement* each, int id) {
    Take(drawn.jnt_actfrcrange, 2, id, mjs_asJoint(each)->actfrcrange);
  });
  ForEach(spec, mjOBJ_ACTUATOR, [&](mjsElement* each, int id) {
    mjsActuator* const actuator = mjs_asActuator(each);
    Take(drawn.actuator_gainprm, mjNGAIN, id, actuator->gainprm);
    Take(drawn.actuator_biasprm, mjNBIAS, id, actuator->biasprm);
    Take(drawn.actuator_forcerange, 2, id, actuator->forcerange);
  });
  ModelPtr model(mj_compile(spec.get(), nullptr));
  if (model == nullptr) ADD_FAILURE() << mjs_getError(spec.get());
  return model;
}

bool IsNear(double a, double b) {
  return std::abs(a - b) <= 1e-12 + 1e-9 * std::max(std::abs(a), std::abs(b));
}

// Compares numbers within 1e-9, everything else exactly.
template <typename T>
void ExpectSameArray(const T* a, const T* b, mjtSize count,
                     const std::string& what) {
  for (mjtSize i = 0; i < count; ++i) {
    ASSERT_TRUE(IsNear(static_cast<double>(a[i]), static_cast<double>(b[i])))
        << what << "[" << i << "]: " << +a[i] << ", expected " << +b[i];
  }
}

#undef MJ_M
#define MJ_M(size) expected.size

void ExpectSameModel(const mjModel& found, const mjModel& expected,
                     const std::string& file) {
#define X(name) ASSERT_EQ(found.name, expected.name) << file;
  MJMODEL_SIZES
#undef X
#define X(type, name, rows, columns)                               \
  ExpectSameArray(found.name, expected.name,                       \
                  static_cast<mjtSize>(expected.rows) * (columns), \
                  file + ", " #name);
  MJMODEL_POINTERS
#undef X
  EXPECT_PRED2(IsNear, found.stat.meaninertia, expected.stat.meaninertia)
      << file;
}

class ModelDraws : public testing::Test {
 protected:
  void SetUp() override {
    InstallMujocoLog([](absl::string_view) {});
  }
  void TearDown() override { InstallMujocoLog(nullptr); }
};

// This includes equal frames that MuJoCo merges, bounding boxes, and all values
// that it derives from masses.
TEST_F(ModelDraws, EqualACompiledModel) {
  for (const std::string& file : Files()) {
    Drawing drawing(file);
    for (int episode = 0; episode < 3; ++episode) {
      drawing.Draw(DrawnContract());
      ExpectSameModel(*drawing.model, *Recompiled(drawing), file);
    }
  }
}

// Checks the place and the effects of an offset.
TEST_F(ModelDraws, OffsetMovesOnlyMassCenters) {
  Contract contract;
  contract.com_offset = {0.01, 0.03};
  for (const std::string& file : Files()) {
    Drawing drawing(file);
    const mjModel& model = *drawing.model;
    const DataPtr plain = MakeData(*drawing.original).value();
    mj_forward(drawing.original.get(), plain.get());
    drawing.Draw(contract);
    const mjData& data = *drawing.data;
    ExpectSameArray(data.geom_xpos, plain->geom_xpos, 3 * model.ngeom,
                    file + ", geom_xpos");
    ExpectSameArray(data.geom_xmat, plain->geom_xmat, 9 * model.ngeom,
                    file + ", geom_xmat");
    ExpectSameArray(data.site_xpos, plain->site_xpos, 3 * model.nsite,
                    file + ", site_xpos");
    ExpectSameArray(data.ximat, plain->ximat, 9 * model.nbody,
                    file + ", ximat");
    for (const int body : drawing.parts.offset_bodies) {
      for (int axis = 0; axis < 3; ++axis) {
        // The drawn offset, in the body's frame.
        mjtNum offset[3];
        mju_sub3(offset, data.xipos + 3 * body, plain->xipos + 3 * body);
        mju_mulMatTVec3(offset, data.xmat + 9 * body, offset);
        EXPECT_GE(offset[axis], 0.01) << file << ", body " << body;
        EXPECT_LE(offset[axis], 0.03) << file << ", body " << body;
      }
    }
  }
}

TEST_F(ModelDraws, StepAsARecompiledModelDoes) {
  for (const std::string& file : Files()) {
    Drawing drawing(file);
    drawing.Draw(DrawnContract());
    const ModelPtr model = Recompiled(drawing);
    const DataPtr data = MakeData(*model).value();
    mj_forward(model.get(), data.get());
    int contacts = 0;
    double difference = 0;
    for (int step = 0; step < 100; ++step) {
      for (const auto& [each, state] :
           {std::pair(drawing.model.get(), drawing.data.get()),
            std::pair(model.get(), data.get())}) {
        std::fill_n(state->ctrl, each->nu, step % 7 < 4 ? 0.4 : -0.5);
        mj_step(each, state);
      }
      ASSERT_EQ(drawing.data->ncon, data->ncon) << file << ", step " << step;
      contacts += data->ncon;
      for (int i = 0; i < model->nq; ++i) {
        difference = std::max(difference,
                              std::abs(drawing.data->qpos[i] - data->qpos[i]));
      }
    }
    EXPECT_LE(difference, 1e-7) << file;
    EXPECT_EQ(contacts > 0, !absl::EndsWith(file, "servo_arm.xml")) << file;
  }
}

// Returns a model's bytes in MuJoCo's file format.
std::vector<char> Bytes(const mjModel& model) {
  std::vector<char> bytes(static_cast<size_t>(mj_sizeModel(&model)));
  mj_saveModel(&model, nullptr, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

// Moves geoms as the scene service does: geoms whose frame is their body's or
// its inertial frame, and one of several.
void MoveGeoms(mjModel* model) {
  for (const char* const name : {"disc", "post", "core", "lid"}) {
    const int geom = mj_name2id(model, mjOBJ_GEOM, name);
    model->geom_pos[3 * geom + 1] += 0.25;
    FollowGeom(model, geom);
  }
}

TEST_F(ModelDraws, KeepMovedGeomsWhereTheyAre) {
  Contract friction;
  friction.friction = {1, 1};  // the model's own friction
  for (const bool moved_before : {true, false}) {
    Drawing drawing(absl::StrCat(kFolder, "turntable.xml"));
    const ModelPtr moved = CopyModel(*drawing.original).value();
    MoveGeoms(moved.get());
    const DataPtr data = MakeData(*moved).value();
    mj_forward(moved.get(), data.get());
    if (moved_before) MoveGeoms(drawing.model.get());
    drawing.Draw(DrawnContract());
    if (!moved_before) MoveGeoms(drawing.model.get());
    for (const Contract& contract :
         {DrawnContract(), friction, DrawnContract(), Contract()}) {
      drawing.Draw(contract);
      ExpectSameArray(drawing.data->geom_xpos, data->geom_xpos,
                      3 * moved->ngeom, "geom_xpos");
      if (contract.mass_scale) continue;
      EXPECT_TRUE(Bytes(*drawing.model) == Bytes(*moved));
    }
  }
}

}  // namespace
}  // namespace tandem
