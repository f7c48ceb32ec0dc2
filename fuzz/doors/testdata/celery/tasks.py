"""Tasks for a worker of Celery in tests. What they do is said in a file, a line each."""
import os
import time

from celery import Celery

app = Celery("tasks", broker=os.environ["BROKER"], backend=os.environ["BROKER"])
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=int(os.environ.get("PREFETCH", "1")),
    broker_connection_max_retries=None,
    broker_transport_options={"lease": float(os.environ.get("LEASE", "30"))},
)


def say(*words):
    with open(os.environ["SAYS"], "a") as file:
        file.write(" ".join(map(str, words)) + "\n")


@app.task
def add(x, y):
    return x + y


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def note(word):
    say(word)
    return word


@app.task(bind=True)
def flaky(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return self.request.retries


@app.task
def broken():
    raise ValueError("broken")


@app.task
def work(n, seconds):
    say("begin", n)
    time.sleep(seconds)
    say("end", n)
    return n


@app.task
def gate(n):
    """The first waits for a file."""
    say("begin", n)
    while n == 0 and not os.path.exists(os.environ["SAYS"] + ".go"):
        time.sleep(0.01)
    return n
