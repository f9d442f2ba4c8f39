# The README's first command in a container:  docker build -t vibe-harness . && docker run --rm vibe-harness
FROM python:3.11-slim
WORKDIR /app
COPY . /src
RUN pip install --no-cache-dir -c /src/.ci/constraints.txt /src && rm -r /src
# Runs lie in /app/runs: mount a folder there to keep them, and one with your recordings and cards beside it.
ENTRYPOINT ["vibe-harness"]
CMD ["--model", "simulated", "--tasks", "story,advisory", "--tau", "5"]
