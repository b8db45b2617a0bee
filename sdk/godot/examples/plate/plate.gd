# A ball on a plate among 20 boxes, in 3D with Bullet: thrust brings it to the goal and keeps it there.
#
# The reward of a step is 1 at the goal, and falls with the distance. So the best possible return is 1 a step, 100: that of
# a ball that begins at the goal.
extends "res://addons/tandem/agent.gd"

const SIDE := 2.0  # metres from the plate's middle to its walls
const WIDTH := 0.3  # metres at which the reward is 0.6
const THRUST := 25.0  # newtons, for a ball of a kilogram

var ball: RigidBody
var boxes := []
var goal: MeshInstance
var thrust := Vector3()
var strength := 1.0


func _init() -> void:
	observation_size = 6
	action_size = 2
	ticks_per_step = 4
	max_episode_steps = 100
	telemetry = PoolStringArray(["x", "z", "speed_x", "speed_z"])
	contract_fields = PoolStringArray(["mass_scale_range", "motor_strength_range"])
	own_methods = PoolStringArray(["place_of_goal"])


func _ready() -> void:
	_add_box(StaticBody.new(), Vector3(0, -0.5, 0), Vector3(SIDE, 0.5, SIDE), Color.slategray)
	for side in [Vector3(1, 0, 0), Vector3(-1, 0, 0), Vector3(0, 0, 1), Vector3(0, 0, -1)]:
		var half := Vector3(0.1, 0.3, SIDE) if side.x != 0 else Vector3(SIDE, 0.3, 0.1)
		_add_box(StaticBody.new(), side * (SIDE + 0.1) + Vector3(0, 0.3, 0), half, Color.darkgray)
	for i in 20:
		var box := RigidBody.new()
		box.mass = 0.1
		boxes.append(_add_box(box, Vector3(), Vector3(0.08, 0.08, 0.08), Color.steelblue))
	ball = RigidBody.new()
	ball.linear_damp = 3
	ball.can_sleep = false
	var sphere := SphereMesh.new()
	sphere.radius = 0.15
	sphere.height = 0.3
	var shape := SphereShape.new()
	shape.radius = 0.15
	_add_body(ball, shape, sphere, Color.orange)
	var disc := CylinderMesh.new()
	disc.top_radius = WIDTH
	disc.bottom_radius = WIDTH
	disc.height = 0.01
	goal = _mesh(disc, Color.limegreen)
	add_child(goal)
	var camera := Camera.new()
	add_child(camera)
	camera.look_at_from_position(Vector3(0, 4.5, 2.5), Vector3(0, 0, 0.2), Vector3.UP)
	camera.current = true
	var light := DirectionalLight.new()
	add_child(light)
	light.look_at_from_position(Vector3(1, 3, 1), Vector3(), Vector3.UP)


func _add_box(body: PhysicsBody, at: Vector3, half: Vector3, colour: Color) -> PhysicsBody:
	var shape := BoxShape.new()
	shape.extents = half
	var mesh := CubeMesh.new()
	mesh.size = 2 * half
	_add_body(body, shape, mesh, colour)
	body.translation = at
	return body


func _add_body(body: PhysicsBody, shape: Shape, mesh: Mesh, colour: Color) -> void:
	var collision := CollisionShape.new()
	collision.shape = shape
	body.add_child(collision)
	body.add_child(_mesh(mesh, colour))
	add_child(body)


func _mesh(mesh: Mesh, colour: Color) -> MeshInstance:
	var instance := MeshInstance.new()
	var material := SpatialMaterial.new()
	material.albedo_color = colour
	instance.mesh = mesh
	instance.material_override = material
	return instance


func _start(contract: Dictionary):
	ball.mass = drawn(contract, "mass_scale_range", 1.0)
	strength = drawn(contract, "motor_strength_range", 1.0)
	thrust = Vector3()
	for i in boxes.size():  # on a grid, each somewhere in its cell
		var cell := Vector3(i % 5 - 2, 0, i / 5 - 1.5)
		_place(boxes[i], cell * Vector3(0.7, 0, 0.85) + _anywhere(0.2) + Vector3(0, 0.08, 0))
	_place(ball, _anywhere(SIDE - 0.3) + Vector3(0, 0.4, 0))
	goal.translation = _anywhere(SIDE - 0.6)
	return OK


func _anywhere(half: float) -> Vector3:
	var x := random.randf_range(-half, half)
	return Vector3(x, 0, random.randf_range(-half, half))


func _place(body: RigidBody, at: Vector3) -> void:
	body.transform = Transform(Basis(), at)
	body.linear_velocity = Vector3()
	body.angular_velocity = Vector3()


func _act(action):
	thrust = strength * THRUST * Vector3(clipped(action, 0), 0, clipped(action, 1))
	return OK


# Bullet forgets a force after each tick.
func _physics_process(_delta: float) -> void:
	ball.add_central_force(thrust)


func _observe():
	var at := ball.translation
	var to_goal := goal.translation - at
	var nearest := Vector3(10, 0, 10)
	for box in boxes:
		var to_box: Vector3 = box.translation - at
		if to_box.length_squared() < nearest.length_squared():
			nearest = to_box
	to_goal.y = 0
	reward = exp(-0.5 * to_goal.length_squared() / (WIDTH * WIDTH))
	var speed := ball.linear_velocity
	return [to_goal.x, to_goal.z, speed.x, speed.z, nearest.x, nearest.z]


func _telemetry():
	return [ball.translation.x, ball.translation.z, ball.linear_velocity.x, ball.linear_velocity.z]


func _call_own(_method: String, _request: PoolByteArray):
	return to_json([goal.translation.x, goal.translation.z])
