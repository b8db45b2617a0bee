# A flyer follows a light, in 2D.
#
# The reward of a step is 1 at the light, and falls with the distance. So the best possible return is 1 a step, 200: that of
# a flyer that is at the light at once, and stays with it.
extends "res://addons/tandem/agent.gd"

const SIZE := Vector2(320, 240)
const WIDTH := 24.0  # pixels at which the reward is 0.6
const THRUST := 900.0

var flyer: RigidBody2D
var light := Vector2()
var phase := 0.0
var strength := 1.0

func _init() -> void:
	observation_size = 4
	action_size = 2
	ticks_per_step = 3
	max_episode_steps = 200
	telemetry = PoolStringArray(["x", "y", "speed_x", "speed_y"])
	contract_fields = PoolStringArray(["motor_strength_range"])

func _ready() -> void:
	print("flyer: the best possible return is ", max_episode_steps)
	for wall in [Rect2(-20, -20, 360, 20), Rect2(-20, 240, 360, 20), Rect2(-20, 0, 20, 240), Rect2(320, 0, 20, 240)]:
		var shape := RectangleShape2D.new()
		shape.extents = wall.size / 2
		_add_body(StaticBody2D.new(), shape).position = wall.position + wall.size / 2
	flyer = RigidBody2D.new()
	flyer.can_sleep = false
	flyer.linear_damp = 3
	flyer.gravity_scale = 0.3
	var circle := CircleShape2D.new()
	circle.radius = 8
	_add_body(flyer, circle)
	get_parent().connect("draw", self, "_draw_all")

func _add_body(body: PhysicsBody2D, shape: Shape2D) -> PhysicsBody2D:
	var collision := CollisionShape2D.new()
	collision.shape = shape
	body.add_child(collision)
	add_child(body)
	return body

func _draw_all() -> void:
	var canvas: Node2D = get_parent()
	canvas.draw_rect(Rect2(Vector2(), SIZE), Color.midnightblue)
	canvas.draw_circle(light, 12, Color.gold)
	canvas.draw_circle(flyer.position, 8, Color.orangered)

func _start(contract: Dictionary):
	strength = drawn(contract, "motor_strength_range", 1.0)
	phase = random.randf_range(0, TAU)
	_move_light()
	flyer.transform = Transform2D(0, light + Vector2(50, 0).rotated(random.randf_range(0, TAU)))
	flyer.linear_velocity = Vector2()
	flyer.angular_velocity = 0
	flyer.applied_force = Vector2()
	return OK

# Returns the light's speed, pixels a second.
func _move_light() -> Vector2:
	phase += 0.015
	light = SIZE / 2 + Vector2(90 * cos(phase), 60 * sin(2 * phase))
	get_parent().update()
	return Vector2(-90 * sin(phase), 120 * cos(2 * phase)) * 0.015 * 20

func _act(action):
	var push := Vector2(clipped(action, 0), clipped(action, 1)) * strength
	# Without an action it hovers.
	flyer.applied_force = push * THRUST + Vector2(0, -0.3 * 98 * flyer.mass)
	return OK

func _observe():
	var speed := _move_light()
	var apart := light - flyer.position
	reward = exp(-0.5 * apart.length_squared() / (WIDTH * WIDTH))
	var drift := speed - flyer.linear_velocity
	return [apart.x / 100, apart.y / 100, drift.x / 100, drift.y / 100]

func _telemetry():
	return [flyer.position.x, flyer.position.y, flyer.linear_velocity.x, flyer.linear_velocity.y]
