# A ball on a plate among 20 boxes, in 3D with Bullet: thrust brings it to the goal and keeps it there.
#
# The reward of a step is 1 at the goal, and falls with the distance. So the best possible return is 1 a step, 100: that of
# a ball that is at the goal at once.
extends "res://addons/tandem/agent.gd"

const SIDE := 2.0  # metres from the plate's middle to its walls
const WIDTH := 0.45  # metres at which the reward is 0.6
const THRUST := 25.0  # newtons, for a ball of a kilogram

var ball: RigidBody
var boxes := []
var goal: MeshInstance
var thrust := Vector3()
var strength := 1.0

func _init() -> void:
	observation_size = 4
	action_size = 2
	ticks_per_step = 4
	max_episode_steps = 100
	telemetry = PoolStringArray(["x", "z", "speed_x", "speed_z"])
	contract_fields = PoolStringArray(["mass_scale_range", "motor_strength_range"])

func _ready() -> void:
	print("plate: the best possible return is ", max_episode_steps)
	_add_body(StaticBody.new(), Vector3(SIDE, 0.5, SIDE), Color.slategray).translation.y = -0.5
	for side in [Vector3(1, 0, 0), Vector3(-1, 0, 0), Vector3(0, 0, 1), Vector3(0, 0, -1)]:
		var half := Vector3(0.1, 0.3, SIDE) if side.x != 0 else Vector3(SIDE, 0.3, 0.1)
		_add_body(StaticBody.new(), half, Color.darkgray).translation = side * (SIDE + 0.1) + Vector3(0, 0.3, 0)
	for i in 20:
		boxes.append(_add_body(RigidBody.new(), Vector3(0.08, 0.08, 0.08), Color.steelblue))
		boxes[i].mass = 0.1
	ball = _add_body(RigidBody.new(), Vector3(), Color.orange)
	ball.linear_damp = 3
	ball.can_sleep = false
	var disc := CylinderMesh.new()
	disc.top_radius = WIDTH
	disc.bottom_radius = WIDTH
	disc.height = 0.01
	goal = _add_mesh(self, disc, Color.limegreen)
	var camera := Camera.new()
	add_child(camera)
	camera.look_at_from_position(Vector3(0, 4.5, 2.5), Vector3(0, 0, 0.2), Vector3.UP)
	camera.current = true
	var light := DirectionalLight.new()
	add_child(light)
	light.look_at_from_position(Vector3(1, 3, 1), Vector3(), Vector3.UP)

# Adds a box; of no size: a ball.
func _add_body(body: PhysicsBody, half: Vector3, colour: Color) -> PhysicsBody:
	var collision := CollisionShape.new()
	var mesh: PrimitiveMesh = CubeMesh.new()
	if half == Vector3():
		mesh = SphereMesh.new()
		mesh.radius = 0.15
		mesh.height = 0.3
		collision.shape = SphereShape.new()
		collision.shape.radius = 0.15
	else:
		mesh.size = 2 * half
		collision.shape = BoxShape.new()
		collision.shape.extents = half
	body.add_child(collision)
	_add_mesh(body, mesh, colour)
	add_child(body)
	return body

func _add_mesh(parent: Node, mesh: Mesh, colour: Color) -> MeshInstance:
	var instance := MeshInstance.new()
	instance.mesh = mesh
	instance.material_override = SpatialMaterial.new()
	instance.material_override.albedo_color = colour
	parent.add_child(instance)
	return instance

func _start(contract: Dictionary):
	ball.mass = drawn(contract, "mass_scale_range", 1.0)
	strength = drawn(contract, "motor_strength_range", 1.0)
	thrust = Vector3()
	for i in boxes.size():  # on a grid, each somewhere in its cell
		var cell := Vector3(i % 5 - 2, 0, i / 5 - 1.5)
		_place(boxes[i], cell * Vector3(0.7, 0, 0.85) + _anywhere(0.2) + Vector3(0, 0.08, 0))
	goal.translation = _anywhere(0.5)
	_place(ball, goal.translation + Vector3(1.3, 0.4, 0).rotated(Vector3.UP, random.randf_range(0, TAU)))
	return OK

func _anywhere(half: float) -> Vector3:
	var x := random.randf_range(-half, half)
	return Vector3(x, 0, random.randf_range(-half, half))

func _place(body: RigidBody, at: Vector3) -> void:
	body.transform = Transform(Basis(), at)
	body.linear_velocity = Vector3()
	body.angular_velocity = Vector3()
	body.sleeping = false

func _act(action):
	thrust = strength * THRUST * Vector3(clipped(action, 0), 0, clipped(action, 1))
	return OK

# Bullet forgets a force after each tick.
func _physics_process(_delta: float) -> void:
	ball.add_central_force(thrust)

func _observe():
	var at := ball.translation
	var to_goal := goal.translation - at
	to_goal.y = 0
	reward = exp(-0.5 * to_goal.length_squared() / (WIDTH * WIDTH))
	var speed := ball.linear_velocity
	return [to_goal.x, to_goal.z, speed.x, speed.z]

func _telemetry():
	return [ball.translation.x, ball.translation.z, ball.linear_velocity.x, ball.linear_velocity.z]
