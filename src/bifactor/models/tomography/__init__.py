"""Quantum states from measurements of qubits."""
