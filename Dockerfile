# docker build -t neuroute . && docker run --rm -v "$PWD/results:/neuroute/results" neuroute make all
# Pinned by requirements.lock, with the hash of each file.
FROM python:3.12-slim
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make && rm -rf /var/lib/apt/lists/*
WORKDIR /neuroute
COPY . .
RUN make env HASHES=yes
ENV PATH=/neuroute/.venv/bin:$PATH
CMD ["neuroute", "--help"]
